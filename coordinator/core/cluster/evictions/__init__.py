"""Seats that are claimed, and the attempts that may have to make room for others."""
