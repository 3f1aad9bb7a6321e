"""Gangs that a job without room may have stopped, and the choice among them; decided on values alone."""
