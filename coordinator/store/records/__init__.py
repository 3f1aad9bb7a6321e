"""The records of the core: in memory, or in a database."""
