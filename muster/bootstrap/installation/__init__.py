"""What is done to a machine: planned, carried out, undone."""
