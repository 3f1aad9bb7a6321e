"""Events of a job that one attempt can have several of: when it waits, queues again, is changed, or goes unused."""

import sqlalchemy as sa
from alembic import op

revision = "0102"
down_revision = "0101"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Tell them apart by their time; of those that are there each stays the only one of its kind."""
    with op.batch_alter_table("job_events") as table:
        table.add_column(sa.Column("again", sa.BigInteger(), nullable=False, server_default="0"))
        table.drop_constraint("uq_job_events_job_attempt_kind_rank", type_="unique")
        table.create_unique_constraint(
            "uq_job_events_job_attempt_kind_rank_again", ["job", "attempt", "kind", "rank", "again"]
        )
