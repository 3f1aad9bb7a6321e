"""The gRPC edge: requests become events and questions for the engine, nothing is decided here."""
