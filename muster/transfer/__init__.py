"""What moves data of jobs: folders as content trees, and objects on disk."""
