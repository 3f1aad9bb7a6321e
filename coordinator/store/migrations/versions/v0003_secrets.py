"""Secrets, what the containers of a project may do, and who an account is at the identity provider."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Make the table of secrets; add to accounts and projects."""
    op.add_column("accounts", sa.Column("identity", sa.String, nullable=False, server_default=""))
    op.add_column("projects", sa.Column("policy", sa.JSON))
    op.create_table(
        "secrets",
        sa.Column("project", sa.String, nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("keys", sa.JSON, nullable=False),
        sa.Column("server", sa.String, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.Column("updated_by", sa.String, nullable=False),
        sa.Column("sealed", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("project", "name", name="pk_secrets"),
    )
