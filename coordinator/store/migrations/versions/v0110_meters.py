"""Meters of what projects hold above their quotas; waits, and what was borrowed and busy of what attempts have held."""

import sqlalchemy as sa
from alembic import op

revision = "0110"
down_revision = "0109"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table and the columns; of attempts that have ended before nothing counts as borrowed."""
    op.create_table(
        "meters",
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("pool", sa.String(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("project", "pool", name="pk_meters"),
    )
    op.add_column("spent", sa.Column("borrowed", sa.BigInteger(), nullable=False, server_default="0"))
    op.add_column("spent", sa.Column("busy", sa.BigInteger(), nullable=True))
    op.add_column("spent", sa.Column("waited", sa.BigInteger(), nullable=True))
