"""What user code tells of itself while it runs."""
