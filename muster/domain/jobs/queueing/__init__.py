"""When jobs come into the queue: what keeps them out of it, and what can be changed while they are not placed."""
