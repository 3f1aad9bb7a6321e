"""Shares: what departments and projects hold of each pool, and what each should have of it."""
