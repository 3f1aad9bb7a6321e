"""Events told to others: which go where, and how they get there although programs and networks fail."""
