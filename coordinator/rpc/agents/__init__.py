"""The streams of agents."""
