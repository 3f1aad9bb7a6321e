"""The agent: reports what its node has, and brings executions as far as the coordinator wants them."""
