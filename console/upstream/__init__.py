"""The coordinator, as the console reaches it."""
