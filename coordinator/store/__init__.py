"""Where records and logs are kept."""
