"""Commands for data of jobs."""
