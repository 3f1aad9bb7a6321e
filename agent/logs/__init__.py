"""Logs of executions on a node until the coordinator has them."""
