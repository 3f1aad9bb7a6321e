"""Portions of GPUs: what is left of a GPU that several executions share, and which of them take one more."""
