"""Commands that look at what jobs do."""
