"""Secrets, who may use them, and the keys that seal them."""
