"""What callers follow: samples of what is used, and the feed of all changes."""
