"""Companions of programs that run already: how an agent asks a supervisor for one, and what the supervisor does."""
