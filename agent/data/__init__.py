"""Inputs of jobs on a node: fetched once for all of its executions, kept for later, and shown to user code."""
