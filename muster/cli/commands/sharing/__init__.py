"""Commands about who gets what: projects, departments, quotas and the queue."""
