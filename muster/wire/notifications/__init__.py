"""Values of events.proto: events of all kinds in one line."""
