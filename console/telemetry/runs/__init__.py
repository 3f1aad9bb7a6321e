"""How attempts end and how fast they start, counted from all events."""
