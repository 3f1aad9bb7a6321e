"""The mover: a program that is there while something is to be moved to or from stores, and the agent's way to it."""
