"""What was used, over HTTP: series of nodes and of the ranks of jobs, out of the console's history."""
