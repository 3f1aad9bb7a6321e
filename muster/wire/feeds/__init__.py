"""The feed on the wire."""
