"""Attachments to running executions: where they lead, what is open, and how agents hear of them."""
