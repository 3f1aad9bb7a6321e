"""What one step changes, and what nodes are told because of it."""
