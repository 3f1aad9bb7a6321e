"""What stays on nodes between jobs, as people see it and as they have it taken away."""
