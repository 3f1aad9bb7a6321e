"""Data of jobs on the wire."""
