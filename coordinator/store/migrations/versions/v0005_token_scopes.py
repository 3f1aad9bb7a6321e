"""Tokens have a most access, projects, and the time at which they were shown last."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Tokens of before may all that their accounts may, and nothing is known of their use."""
    op.add_column("tokens", sa.Column("access", sa.String()))
    op.add_column("tokens", sa.Column("projects", sa.JSON()))
    op.add_column("tokens", sa.Column("used_at", sa.DateTime(timezone=True)))
