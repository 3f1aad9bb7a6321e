"""Images of jobs, as the nodes of a job agree on them."""
