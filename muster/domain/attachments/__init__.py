"""Attachments: streams between a person, or a program, and a running execution."""
