"""The audit log: written, kept for a while, exported."""
