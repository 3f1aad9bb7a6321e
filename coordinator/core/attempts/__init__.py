"""How an attempt begins, goes on, ends, and is followed by another."""
