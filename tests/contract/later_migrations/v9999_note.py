"""A migration that is not there yet: jobs get a note."""

import sqlalchemy as sa
from alembic import op

from coordinator.store.schema import VERSION

revision = "9999"
down_revision = VERSION
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add an empty column."""
    op.add_column("jobs", sa.Column("note", sa.String(), nullable=False, server_default=""))
