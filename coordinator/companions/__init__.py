"""The coordinator's side of the programs beside it, relay and depot: tickets, and the sockets that they dial."""
