"""What user code finds that is written for a framework: pure functions, one for each framework."""
