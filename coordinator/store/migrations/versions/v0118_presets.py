"""Presets of the fleet and of projects: fragments of job files, every version of which is kept."""

import sqlalchemy as sa
from alembic import op

from coordinator.store.schema import UtcTime

revision = "0118"
down_revision = "0115"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make their table."""
    op.create_table(
        "presets",
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("document", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("note", sa.String(), nullable=False),
        sa.Column("made_at", UtcTime(), nullable=True),
        sa.Column("made_by", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("project", "kind", "name", "version", name="pk_presets"),
    )
