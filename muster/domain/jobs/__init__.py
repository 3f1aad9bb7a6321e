"""Jobs as values: what users write, what may be written, how a job goes on and ends."""
