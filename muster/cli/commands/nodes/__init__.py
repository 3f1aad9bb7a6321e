"""`muster nodes`: what is told of nodes, and how machines become nodes."""
