"""What user code finds when it starts: environment, files, secrets, its user."""
