"""Logins with identity providers."""
