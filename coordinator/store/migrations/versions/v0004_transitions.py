"""Transitions are read out of the executions instead of being kept beside them."""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

SQLITE = """
CREATE VIEW transitions AS
SELECT executions.id AS execution, entered.key AS state, replace(replace(entered.value, 'T', ' '), 'Z', '') AS at
FROM executions, json_each(executions.body, '$.times') AS entered
"""

POSTGRESQL = """
CREATE VIEW transitions AS
SELECT executions.id AS execution, entered.key AS state, entered.value::timestamptz AS at
FROM executions, json_each_text(executions.body::json -> 'times') AS entered
"""


def upgrade() -> None:
    """A view with the name and the columns that the table had."""
    op.drop_table("transitions")
    op.execute(SQLITE if op.get_bind().dialect.name == "sqlite" else POSTGRESQL)
