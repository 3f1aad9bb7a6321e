"""What may become of a job that waits: which change would have it placed now, and when it may start."""
