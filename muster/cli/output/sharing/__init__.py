"""Quotas and the queue as tables."""
