"""Projects, departments, quotas and the queue."""
