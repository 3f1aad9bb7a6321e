"""The shapes in which lists are answered."""
