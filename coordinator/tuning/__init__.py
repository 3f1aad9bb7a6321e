"""How the process treats thousands of connections: its memory, its garbage."""
