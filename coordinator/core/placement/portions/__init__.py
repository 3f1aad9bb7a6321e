"""Portions of GPUs: what is left of GPUs that several executions share, and the nodes that have such GPUs."""
