"""Backups of a state directory: made while the coordinator runs, restored into an empty directory, and checked."""
