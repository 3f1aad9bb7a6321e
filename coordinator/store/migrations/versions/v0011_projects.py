"""Projects as records, with the whole of each as JSON in its body."""

import json
from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Give each project a body that says what its columns said."""
    op.add_column("projects", sa.Column("body", sa.Text(), nullable=False, server_default=""))
    projects = sa.table(
        "projects",
        sa.column("name", sa.String()),
        sa.column("created_at", sa.DateTime(timezone=True)),
        sa.column("policy", sa.JSON()),
        sa.column("body", sa.Text()),
    )
    connection = op.get_bind()
    for name, created_at, policy in connection.execute(
        sa.select(projects.c.name, projects.c.created_at, projects.c.policy)
    ).all():
        body = json.dumps({"name": name, "created_at": _in_utc(created_at), "policy": policy or {}})
        connection.execute(sa.update(projects).where(projects.c.name == name).values(body=body))
    with op.batch_alter_table("projects") as table:
        table.drop_column("policy")


def _in_utc(moment: datetime) -> str:
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).isoformat()
