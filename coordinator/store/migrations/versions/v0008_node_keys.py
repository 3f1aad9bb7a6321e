"""Nodes have a key that is to follow, and the stage of changes of the authority that they know of."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nodes of before have one key, and know of no change."""
    op.add_column("enrolled_nodes", sa.Column("epoch", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("enrolled_nodes", sa.Column("next_key", sa.String(), nullable=False, server_default=""))
    op.add_column("enrolled_nodes", sa.Column("next_epoch", sa.Integer(), nullable=False, server_default="0"))
