"""Logs of executions in files."""
