"""How the process treats thousands of connections: its event loop, its memory, its garbage."""
