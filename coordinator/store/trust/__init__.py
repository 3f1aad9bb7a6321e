"""Accounts, tokens, certificates, secrets and the audit log in a database."""
