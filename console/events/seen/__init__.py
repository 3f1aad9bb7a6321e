"""What no coordinator tells as an event, and the console sees: deleted jobs, quotas that are reached, its silence."""
