"""Nodes that fetch the same for an attempt: who they are, and whom each asks for which piece."""
