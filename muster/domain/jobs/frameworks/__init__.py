"""The frameworks and dialects that a job can name, and the roles that frameworks know."""
