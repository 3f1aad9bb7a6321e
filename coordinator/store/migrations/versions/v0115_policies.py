"""Policies of the fleet and of projects: what jobs may say."""

import sqlalchemy as sa
from alembic import op

from coordinator.store.schema import UtcTime

revision = "0115"
down_revision = "0114"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make their table."""
    op.create_table(
        "policies",
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("rules", sa.JSON(), nullable=False),
        sa.Column("updated_at", UtcTime(), nullable=True),
        sa.Column("updated_by", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("project", name="pk_policies"),
    )
