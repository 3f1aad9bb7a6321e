"""Domains of nodes that are close to each other, and which of them a gang goes to."""
