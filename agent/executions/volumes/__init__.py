"""Volumes of executions on the node's disk: those that go with them, and those that stay for the project."""
