"""Jobs, attempts, executions, their transitions, and nodes."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)


def child_of(columns: list[str], referred: list[str], name: str) -> sa.ForeignKeyConstraint:
    """A foreign key that is checked at commit."""
    return sa.ForeignKeyConstraint(
        columns, referred, name=name, ondelete="CASCADE", deferrable=True, initially="DEFERRED"
    )


def upgrade() -> None:
    """Make the first tables."""
    op.create_table(
        "jobs",
        sa.Column("id", sa.String, nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("sequence", sa.Integer, nullable=False),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("submitted_at", TIME, nullable=False),
        sa.Column("ended_at", TIME),
        sa.Column("body", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
    )
    op.create_table(
        "attempts",
        sa.Column("job", sa.String, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("goal", sa.String),
        sa.Column("placed_at", TIME),
        sa.Column("released_at", TIME),
        sa.Column("ended_at", TIME),
        sa.Column("failure", sa.String),
        sa.Column("body", sa.Text, nullable=False),
        child_of(["job"], ["jobs.id"], "fk_attempts_job_jobs"),
        sa.PrimaryKeyConstraint("job", "number", name="pk_attempts"),
    )
    op.create_table(
        "executions",
        sa.Column("id", sa.String, nullable=False),
        sa.Column("job", sa.String, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("rank", sa.Integer, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("node", sa.String),
        sa.Column("exit_code", sa.Integer),
        sa.Column("body", sa.Text, nullable=False),
        child_of(["job", "attempt"], ["attempts.job", "attempts.number"], "fk_executions_job_attempt_attempts"),
        sa.PrimaryKeyConstraint("id", name="pk_executions"),
        sa.UniqueConstraint("job", "attempt", "rank", name="uq_executions_job_attempt_rank"),
    )
    op.create_table(
        "transitions",
        sa.Column("execution", sa.String, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("at", TIME, nullable=False),
        child_of(["execution"], ["executions.id"], "fk_transitions_execution_executions"),
        sa.PrimaryKeyConstraint("execution", "state", name="pk_transitions"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "nodes",
        sa.Column("name", sa.String, nullable=False),
        sa.Column("identity", sa.String, nullable=False),
        sa.Column("address", sa.String, nullable=False),
        sa.Column("agent_version", sa.String, nullable=False),
        sa.Column("joined_at", TIME, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_nodes"),
    )
