"""Events of nodes and of the fleet."""

import sqlalchemy as sa
from alembic import op

revision = "0101"
down_revision = "0100"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make their table; what happened before is not in it."""
    op.create_table(
        "story_events",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_story_events"),
        sa.UniqueConstraint("id", name="uq_story_events_id"),
    )
    op.create_index("ix_story_events_subject_number", "story_events", ["subject", "number"], unique=False)
