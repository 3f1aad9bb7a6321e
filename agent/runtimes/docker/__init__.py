"""Executions as containers of a Docker engine."""
