"""The id of the fleet whose database this is."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """An empty table; the start that migrates an older database writes the id."""
    op.create_table(
        "fleet", sa.Column("id", sa.String(), nullable=False), sa.PrimaryKeyConstraint("id", name="pk_fleet")
    )
