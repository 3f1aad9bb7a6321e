"""What a valid job is, and what is filled in where a job is silent: the one rule book."""
