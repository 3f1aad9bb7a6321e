"""Nodes, people and what both share: access, secrets, bundles, the audit chain."""
