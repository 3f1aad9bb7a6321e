"""Attachments on their way through the relay: channels over whatever streams there are."""
