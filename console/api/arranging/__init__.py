"""What admins and operators arrange over HTTP: pools, windows, quotas, and many jobs at once."""
