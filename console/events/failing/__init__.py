"""Targets that take no events: since when, who is told of it, and when nothing more is sent to them."""
