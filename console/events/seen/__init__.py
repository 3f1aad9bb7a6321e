"""What no coordinator tells as an event, and the console sees: jobs that are deleted, and quotas that are reached."""
