"""Checkpoints on a node: parts are stored while user code runs, and found again by the next attempt."""
