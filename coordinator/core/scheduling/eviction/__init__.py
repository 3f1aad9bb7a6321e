"""Whom a job that finds no room may have stopped, and which of them it is; decided on values alone."""
