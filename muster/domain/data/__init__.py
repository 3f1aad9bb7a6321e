"""Data of jobs as values: trees of files by content, names with wildcards, and who fetches which piece. No I/O."""
