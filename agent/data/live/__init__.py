"""Outputs that are stored while user code runs: where they lie, and what is noted of them."""
