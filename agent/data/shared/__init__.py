"""Inputs that several nodes of an attempt want: each fetches a share of them, and gives it to the others."""
