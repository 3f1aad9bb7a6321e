"""Where a job may go, beyond what its executions need: pools, and which nodes of them."""
