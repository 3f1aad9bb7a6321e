"""What the coordinator and the programs beside it say to each other over a socket: JSON objects, one on each line."""
