"""Attachments of people and programs elsewhere, which come over the relay."""
