"""Attachments to running executions, as a client has them."""
