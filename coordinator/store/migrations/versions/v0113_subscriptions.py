"""Subscriptions of projects: which events go where."""

import sqlalchemy as sa
from alembic import op

from coordinator.store.schema import UtcTime

revision = "0113"
down_revision = "0111"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make their table."""
    op.create_table(
        "subscriptions",
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("target", sa.String(), nullable=False),
        sa.Column("to", sa.JSON(), nullable=False),
        sa.Column("events", sa.JSON(), nullable=False),
        sa.Column("minimum", sa.String(), nullable=False),
        sa.Column("jobs", sa.String(), nullable=False),
        sa.Column("owners", sa.JSON(), nullable=False),
        sa.Column("labels", sa.JSON(), nullable=False),
        sa.Column("updated_at", UtcTime(), nullable=False),
        sa.Column("updated_by", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("project", "name", name="pk_subscriptions"),
    )
