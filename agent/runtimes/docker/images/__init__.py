"""Images of containers: how they come to the node, which one counts for a job, and when they go."""
