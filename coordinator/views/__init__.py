"""What clients see, made from records."""
