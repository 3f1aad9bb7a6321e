"""What is kept for the head of the queue: whether its nodes can have it, and when it is free by limits alone."""
