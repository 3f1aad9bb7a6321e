"""What user code finds that was written for another system: pure functions, one for each dialect."""
