"""Whose a job is, by project and account, and the labels by which people find it."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

SQLITE = """
CREATE VIEW job_labels AS
SELECT jobs.id AS job, label.key AS name, label.value AS value
FROM jobs, json_each(jobs.body, '$.spec.labels') AS label
"""

POSTGRESQL = """
CREATE VIEW job_labels AS
SELECT jobs.id AS job, label.key AS name, label.value AS value
FROM jobs, json_each_text(jobs.body::json -> 'spec' -> 'labels') AS label
"""


def upgrade() -> None:
    """Add the columns to jobs, filled from what their bodies say, and a view of the labels."""
    op.add_column("jobs", sa.Column("project", sa.String(), nullable=False, server_default=""))
    op.add_column("jobs", sa.Column("owner", sa.String(), nullable=False, server_default=""))
    sqlite = op.get_bind().dialect.name == "sqlite"
    said = sa.text("json_extract(body, '$.spec.project')" if sqlite else "body::json -> 'spec' ->> 'project'")
    jobs = sa.table("jobs", sa.column("project"), sa.column("owner"))
    op.execute(sa.update(jobs).values(project=sa.func.coalesce(said, "default"), owner="local"))
    op.create_index("ix_jobs_project", "jobs", ["project"])
    op.create_index("ix_jobs_owner", "jobs", ["owner"])
    op.execute(SQLITE if sqlite else POSTGRESQL)
