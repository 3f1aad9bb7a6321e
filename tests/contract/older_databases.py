"""Databases as earlier versions wrote them."""

from pathlib import Path

from sqlalchemy import MetaData, Table, insert

from coordinator.store import migrations, schema
from coordinator.store.dialect import connect
from muster.domain.jobs.lifecycle import State
from tests.contract.records import execution, gang, puts


def write_older(database: Path, version: str) -> None:
    """Write a database with one job, of that version of the schema."""
    engine = connect(database, foreign_keys=False)
    with engine.begin() as connection:
        migrations.upgrade(connection, version)
        kept = [put.record for put in (*gang("a", size=0), *puts(execution("a", state=State.PLACED)))]
        for table, row in map(schema.row, kept):
            of_then = Table(table.name, MetaData(), autoload_with=connection)
            connection.execute(insert(of_then), {name: value for name, value in row.items() if name in of_then.c})
    engine.dispose()
