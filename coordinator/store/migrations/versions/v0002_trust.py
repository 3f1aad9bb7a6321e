"""Accounts, grants, tokens, projects, enrolled nodes and the audit log."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Make the tables of trust."""
    op.create_table(
        "accounts",
        sa.Column("name", sa.String, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_accounts"),
    )
    op.create_table(
        "projects",
        sa.Column("name", sa.String, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_projects"),
    )
    op.create_table(
        "grants",
        sa.Column("account", sa.String, nullable=False),
        sa.Column("project", sa.String, nullable=False),
        sa.Column("access", sa.String, nullable=False),
        sa.ForeignKeyConstraint(["account"], ["accounts.name"], name="fk_grants_account_accounts", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("account", "project", name="pk_grants"),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.String, nullable=False),
        sa.Column("account", sa.String, nullable=False),
        sa.Column("note", sa.String, nullable=False),
        sa.Column("digest", sa.String, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME),
        sa.Column("revoked_at", TIME),
        sa.ForeignKeyConstraint(["account"], ["accounts.name"], name="fk_tokens_account_accounts", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
    )
    op.create_table(
        "join_tokens",
        sa.Column("id", sa.String, nullable=False),
        sa.Column("digest", sa.String, nullable=False),
        sa.Column("created_by", sa.String, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.Column("uses_left", sa.Integer, nullable=False),
        sa.Column("labels", sa.JSON, nullable=False),
        sa.Column("revoked_at", TIME),
        sa.PrimaryKeyConstraint("id", name="pk_join_tokens"),
    )
    op.create_table(
        "enrolled_nodes",
        sa.Column("name", sa.String, nullable=False),
        sa.Column("key", sa.String, nullable=False),
        sa.Column("enrolled_at", TIME, nullable=False),
        sa.Column("token", sa.String, nullable=False),
        sa.Column("labels", sa.JSON, nullable=False),
        sa.Column("revoked_at", TIME),
        sa.PrimaryKeyConstraint("name", name="pk_enrolled_nodes"),
    )
    op.create_table(
        "audit",
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("who", sa.String, nullable=False),
        sa.Column("what", sa.String, nullable=False),
        sa.Column("target", sa.String, nullable=False),
        sa.Column("origin", sa.String, nullable=False),
        sa.Column("result", sa.String, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_audit"),
    )
    if op.get_bind().dialect.name == "sqlite":
        for order in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER audit_no_{order.lower()} BEFORE {order} ON audit "
                "BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END"
            )
