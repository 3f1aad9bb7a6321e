"""One servicer for each service that clients call."""
