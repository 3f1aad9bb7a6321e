"""Jobs that somebody looks at: one watch, and one follow of logs and of points, for all viewers of a job."""
