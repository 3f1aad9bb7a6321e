"""Subscriptions of the coordinator, which the console follows beside its file, and reports on."""
