"""Attachments that are open: which there are, how many more there may be, and what the audit log says of them."""
