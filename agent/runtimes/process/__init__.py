"""Executions as plain processes, each with a supervisor that outlives the agent."""
