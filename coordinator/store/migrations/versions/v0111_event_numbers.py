"""Numbers of events that are never given again, so that who has read up to one misses nothing after a deletion."""

from alembic import op

revision = "0111"
down_revision = "0110"
branch_labels = None
depends_on = None

_TABLES = ("job_events", "story_events")


def upgrade() -> None:
    """Have SQLite remember the greatest number that it has given; PostgreSQL does so by itself."""
    if op.get_bind().dialect.name != "sqlite":
        return
    for table in _TABLES:
        with op.batch_alter_table(table, recreate="always", table_kwargs={"sqlite_autoincrement": True}):
            pass
