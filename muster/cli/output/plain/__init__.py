"""The same for pipes, without Rich."""
