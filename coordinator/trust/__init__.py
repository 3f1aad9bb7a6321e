"""Who may speak to this coordinator, and what he may do. It knows no network and no database."""
