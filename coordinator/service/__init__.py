"""What callers may do, one module for each noun; knows no transport."""
