"""The maps of a job file that are about data of jobs."""
