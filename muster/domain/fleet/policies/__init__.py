"""What jobs of a fleet, or of a project, may say: rules by key of the job file."""
