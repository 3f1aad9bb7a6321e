"""Accounts, tokens, secrets and rights. This package knows no database; `oidc_web` alone knows a network."""
