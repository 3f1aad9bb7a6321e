"""Events of jobs are kept."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """An empty table: what happened to the jobs that are there was never noted."""
    op.create_table(
        "job_events",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("job", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["job"],
            ["jobs.id"],
            name="fk_job_events_job_jobs",
            ondelete="CASCADE",
            deferrable=True,
            initially="DEFERRED",
        ),
        sa.PrimaryKeyConstraint("number", name="pk_job_events"),
        sa.UniqueConstraint("job", "attempt", "kind", "rank", name="uq_job_events_job_attempt_kind_rank"),
    )
