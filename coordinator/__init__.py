"""The coordinator: queues gangs, places them, calls the roll and releases them."""
