"""What attempts have held, which outlives their jobs."""

import sqlalchemy as sa
from alembic import op

revision = "0109"
down_revision = "0108"
branch_labels = None
depends_on = None

_TEXTS = ("name", "project", "owner", "pool", "job_class", "outcome")
_AMOUNTS = ("gpus", "cpus", "memory", "lost")


def upgrade() -> None:
    """Make their table."""
    op.create_table(
        "spent",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("job", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        *(sa.Column(name, sa.String(), nullable=False) for name in _TEXTS),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in _AMOUNTS),
        sa.Column("placed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_spent"),
        sa.UniqueConstraint("job", "attempt", name="uq_spent_job_attempt"),
    )
    op.create_index("ix_spent_ended_at", "spent", ["ended_at"])
