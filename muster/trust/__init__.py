"""Identities: certificates, the secrets in tokens, and the files in which both are kept."""
