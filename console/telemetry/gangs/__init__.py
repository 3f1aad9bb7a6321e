"""Gangs that run, and which rank of them differs from the others."""
