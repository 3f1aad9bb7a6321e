"""What callers may read of everything that happens."""
