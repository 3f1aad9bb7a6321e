"""Secrets of executions: asked for, kept in memory and on tmpfs."""
