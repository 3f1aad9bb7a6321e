"""The tables of trust: accounts, tokens, secrets, subscriptions, policies, presets, enrolled nodes, the audit log."""

from sqlalchemy import JSON, Column, ForeignKeyConstraint, Integer, LargeBinary, String, Table

from coordinator.store.schema import UtcTime, metadata


def _of_account() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(["account"], ["accounts.name"], ondelete="CASCADE")


accounts = Table(
    "accounts",
    metadata,
    Column("name", String, primary_key=True),
    Column("kind", String, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("identity", String, nullable=False, server_default=""),
)

secrets = Table(
    "secrets",
    metadata,
    Column("project", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("kind", String, nullable=False),
    Column("keys", JSON, nullable=False),
    Column("server", String, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("updated_at", UtcTime, nullable=False),
    Column("updated_by", String, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
)
"""The values are in `sealed`, encrypted with a key that is not in the database."""

subscriptions = Table(
    "subscriptions",
    metadata,
    Column("project", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("target", String, nullable=False),
    Column("to", JSON, nullable=False),
    Column("events", JSON, nullable=False),
    Column("minimum", String, nullable=False),
    Column("jobs", String, nullable=False),
    Column("owners", JSON, nullable=False),
    Column("labels", JSON, nullable=False),
    Column("updated_at", UtcTime, nullable=False),
    Column("updated_by", String, nullable=False),
)
"""The keys of subscriptions are among the secrets."""

policies = Table(
    "policies",
    metadata,
    Column("project", String, primary_key=True),
    Column("rules", JSON, nullable=False),
    Column("updated_at", UtcTime),
    Column("updated_by", String, nullable=False),
)
"""What jobs may say; the project `*` is the fleet."""

presets = Table(
    "presets",
    metadata,
    Column("project", String, primary_key=True),
    Column("kind", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("document", JSON(none_as_null=True)),
    Column("title", String, nullable=False),
    Column("note", String, nullable=False),
    Column("made_at", UtcTime),
    Column("made_by", String, nullable=False),
)
"""Every version of every preset; one without a document only says how many there were of what was removed."""

grants = Table(
    "grants",
    metadata,
    Column("account", String, primary_key=True),
    Column("project", String, primary_key=True),
    Column("access", String, nullable=False),
    _of_account(),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", String, primary_key=True),
    Column("account", String, nullable=False),
    Column("note", String, nullable=False),
    Column("digest", String, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("expires_at", UtcTime),
    Column("revoked_at", UtcTime),
    Column("access", String),
    Column("projects", JSON),
    Column("used_at", UtcTime),
    _of_account(),
)

join_tokens = Table(
    "join_tokens",
    metadata,
    Column("id", String, primary_key=True),
    Column("digest", String, nullable=False),
    Column("created_by", String, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("expires_at", UtcTime, nullable=False),
    Column("uses_left", Integer, nullable=False),
    Column("labels", JSON, nullable=False),
    Column("revoked_at", UtcTime),
)

enrolled_nodes = Table(
    "enrolled_nodes",
    metadata,
    Column("name", String, primary_key=True),
    Column("key", String, nullable=False),
    Column("enrolled_at", UtcTime, nullable=False),
    Column("token", String, nullable=False),
    Column("labels", JSON, nullable=False),
    Column("revoked_at", UtcTime),
    Column("epoch", Integer, nullable=False, server_default="0"),
    Column("next_key", String, nullable=False, server_default=""),
    Column("next_epoch", Integer, nullable=False, server_default="0"),
)

audit = Table(
    "audit",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("at", UtcTime, nullable=False),
    Column("who", String, nullable=False),
    Column("what", String, nullable=False),
    Column("target", String, nullable=False),
    Column("origin", String, nullable=False),
    Column("result", String, nullable=False),
    Column("previous", String, nullable=False, server_default=""),
    Column("hash", String, nullable=False, server_default=""),
)
"""Only added to, and removed from up to the newest anchor; triggers refuse anything else."""

audit_anchors = Table(
    "audit_anchors",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("hash", String, nullable=False),
    Column("at", UtcTime, nullable=False),
)
"""The last entries of what was removed from the audit log because it was old."""
