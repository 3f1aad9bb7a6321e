"""What is seen of executions while they run: faults of their GPUs, and whether anybody uses them."""
