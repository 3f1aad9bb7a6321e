"""Containers as values: what Docker is told of an execution, and what its refusals mean."""
