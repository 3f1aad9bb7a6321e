"""Admission: who is let in at a listener, decided before the message of a call is read, and how much one may hold open.

A listener gives it a way to know callers, a table of public calls, a pace and bounds; nothing here knows a service.
"""
