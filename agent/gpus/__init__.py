"""The GPUs of a node: found, watched, simulated."""
