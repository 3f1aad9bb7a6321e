"""Who may speak to this coordinator, and what he may do. It knows no database; `oidc_web` alone knows a network."""
