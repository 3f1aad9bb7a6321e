"""What agents are told, as messages."""
