"""Pools: which nodes are in one, and what holds there."""

import sqlalchemy as sa
from alembic import op

revision = "0108"
down_revision = "0104"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make their table."""
    op.create_table(
        "pools",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_pools"),
    )
