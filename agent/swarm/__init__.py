"""Nodes of an attempt that fetch the same fetch it from its origin once, and hand the pieces to each other."""
