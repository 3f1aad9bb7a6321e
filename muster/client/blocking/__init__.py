"""What a synchronous client runs on: a loop in a thread of its own."""
