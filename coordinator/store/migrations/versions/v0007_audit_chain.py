"""The audit log as a chain of hashes, with anchors up to which it may be deleted."""

from datetime import UTC

import sqlalchemy as sa
from alembic import op

from coordinator.store.dialect import audit_rules
from muster.domain.fleet.access import AuditEntry
from muster.domain.fleet.audit_chain import hash_at

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Chain what is there, then have the database refuse changes."""
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        op.execute("DROP TRIGGER audit_no_update")
        op.execute("DROP TRIGGER audit_no_delete")
    op.add_column("audit", sa.Column("previous", sa.String, nullable=False, server_default=""))
    op.add_column("audit", sa.Column("hash", sa.String, nullable=False, server_default=""))
    op.create_table(
        "audit_anchors",
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("hash", sa.String, nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_audit_anchors"),
    )
    _chain(connection)
    for statement in audit_rules(connection.dialect):
        op.execute(sa.text(statement))


def _chain(connection: sa.Connection) -> None:
    texts = ("who", "what", "target", "origin", "result")
    names = ("number", *texts, "previous", "hash")
    audit = sa.table("audit", *[sa.column(name) for name in names], sa.column("at", TIME))
    previous = ""
    for row in connection.execute(sa.select(audit).order_by(audit.c.number)).mappings().all():
        at = row["at"] if row["at"].tzinfo else row["at"].replace(tzinfo=UTC)
        digest = hash_at(AuditEntry(at=at, **{name: row[name] for name in texts}), row["number"], previous)
        written = sa.update(audit).where(audit.c.number == row["number"])
        connection.execute(written.values(previous=previous, hash=digest))
        previous = digest
