"""Storing what executions save, beside the loop that watches them."""
