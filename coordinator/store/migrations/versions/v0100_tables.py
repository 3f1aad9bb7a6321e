"""The tables, their views, and the rules by which the database itself refuses changes of the audit log.

This is where every database begins. What comes after it gets a migration of its own.
"""

import sqlalchemy as sa
from alembic import op

from coordinator.store.dialect import audit_rules

revision = "0100"
down_revision = None
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)

TRANSITIONS = {
    "sqlite": """
CREATE VIEW transitions AS
SELECT executions.id AS execution, entered.key AS state, replace(replace(entered.value, 'T', ' '), 'Z', '') AS at
FROM executions, json_each(executions.body, '$.times') AS entered
""",
    "postgresql": """
CREATE VIEW transitions AS
SELECT executions.id AS execution, entered.key AS state, entered.value::timestamptz AS at
FROM executions, json_each_text(executions.body::json -> 'times') AS entered
""",
}
"""States that executions entered, read out of their bodies."""

LABELS = {
    "sqlite": """
CREATE VIEW job_labels AS
SELECT jobs.id AS job, label.key AS name, label.value AS value
FROM jobs, json_each(jobs.body, '$.spec.labels') AS label
""",
    "postgresql": """
CREATE VIEW job_labels AS
SELECT jobs.id AS job, label.key AS name, label.value AS value
FROM jobs, json_each_text(jobs.body::json -> 'spec' -> 'labels') AS label
""",
}
"""Labels of jobs, read out of their bodies."""


def upgrade() -> None:
    """Make everything."""
    _make_tables()
    dialect = op.get_bind().dialect
    op.execute(TRANSITIONS[dialect.name])
    op.execute(LABELS[dialect.name])
    for statement in audit_rules(dialect):
        op.execute(sa.text(statement))


def _make_tables() -> None:
    op.create_table(
        "accounts",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("identity", sa.String(), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_accounts"),
    )
    op.create_table(
        "audit",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("who", sa.String(), nullable=False),
        sa.Column("what", sa.String(), nullable=False),
        sa.Column("target", sa.String(), nullable=False),
        sa.Column("origin", sa.String(), nullable=False),
        sa.Column("result", sa.String(), nullable=False),
        sa.Column("previous", sa.String(), server_default="", nullable=False),
        sa.Column("hash", sa.String(), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_audit"),
    )
    op.create_table(
        "audit_anchors",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_audit_anchors"),
    )
    op.create_table(
        "enrolled_nodes",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("enrolled_at", TIME, nullable=False),
        sa.Column("token", sa.String(), nullable=False),
        sa.Column("labels", sa.JSON(), nullable=False),
        sa.Column("revoked_at", TIME, nullable=True),
        sa.Column("epoch", sa.Integer(), server_default="0", nullable=False),
        sa.Column("next_key", sa.String(), server_default="", nullable=False),
        sa.Column("next_epoch", sa.Integer(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_enrolled_nodes"),
    )
    op.create_table(
        "fleet", sa.Column("id", sa.String(), nullable=False), sa.PrimaryKeyConstraint("id", name="pk_fleet")
    )
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("sequence", sa.Integer(), nullable=False),
        sa.Column("project", sa.String(), server_default="", nullable=False),
        sa.Column("owner", sa.String(), server_default="", nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("submitted_at", TIME, nullable=False),
        sa.Column("ended_at", TIME, nullable=True),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
    )
    op.create_index("ix_jobs_owner", "jobs", ["owner"], unique=False)
    op.create_index("ix_jobs_project", "jobs", ["project"], unique=False)
    op.create_table(
        "join_tokens",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("created_by", sa.String(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.Column("uses_left", sa.Integer(), nullable=False),
        sa.Column("labels", sa.JSON(), nullable=False),
        sa.Column("revoked_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_join_tokens"),
    )
    op.create_table(
        "nodes",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("identity", sa.String(), nullable=False),
        sa.Column("address", sa.String(), nullable=False),
        sa.Column("agent_version", sa.String(), nullable=False),
        sa.Column("joined_at", TIME, nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_nodes"),
    )
    op.create_table(
        "projects",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_projects"),
    )
    op.create_table(
        "secrets",
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("keys", sa.JSON(), nullable=False),
        sa.Column("server", sa.String(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.Column("updated_by", sa.String(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("project", "name", name="pk_secrets"),
    )
    op.create_table(
        "attempts",
        sa.Column("job", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("goal", sa.String(), nullable=True),
        sa.Column("placed_at", TIME, nullable=True),
        sa.Column("released_at", TIME, nullable=True),
        sa.Column("ended_at", TIME, nullable=True),
        sa.Column("failure", sa.String(), nullable=True),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["job"], ["jobs.id"], name="fk_attempts_job_jobs", ondelete="CASCADE", initially="DEFERRED", deferrable=True
        ),
        sa.PrimaryKeyConstraint("job", "number", name="pk_attempts"),
    )
    op.create_table(
        "grants",
        sa.Column("account", sa.String(), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("access", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["account"], ["accounts.name"], name="fk_grants_account_accounts", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("account", "project", name="pk_grants"),
    )
    op.create_table(
        "job_events",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("job", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["job"],
            ["jobs.id"],
            name="fk_job_events_job_jobs",
            ondelete="CASCADE",
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("number", name="pk_job_events"),
        sa.UniqueConstraint("job", "attempt", "kind", "rank", name="uq_job_events_job_attempt_kind_rank"),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("account", sa.String(), nullable=False),
        sa.Column("note", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=True),
        sa.Column("revoked_at", TIME, nullable=True),
        sa.Column("access", sa.String(), nullable=True),
        sa.Column("projects", sa.JSON(), nullable=True),
        sa.Column("used_at", TIME, nullable=True),
        sa.ForeignKeyConstraint(["account"], ["accounts.name"], name="fk_tokens_account_accounts", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
    )
    op.create_table(
        "executions",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("job", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("node", sa.String(), nullable=True),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["job", "attempt"],
            ["attempts.job", "attempts.number"],
            name="fk_executions_job_attempt_attempts",
            ondelete="CASCADE",
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("id", name="pk_executions"),
        sa.UniqueConstraint("job", "attempt", "rank", name="uq_executions_job_attempt_rank"),
    )
