"""Whether a gang fits, and on which nodes and GPUs."""
