"""The coordinator's side of the relay: tickets for both sides of attachments, and the socket that the relay dials."""
