"""The frameworks that a job can name, and the roles that they know."""
