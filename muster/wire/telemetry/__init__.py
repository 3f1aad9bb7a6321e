"""What user code tells of itself, as it travels."""
