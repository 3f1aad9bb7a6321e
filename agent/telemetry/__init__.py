"""What a node and its executions use, as the kernel counts it."""
