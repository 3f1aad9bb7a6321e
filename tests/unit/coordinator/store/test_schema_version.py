"""The version of the schema that the program asks for."""

from pathlib import Path

import coordinator.store.migrations.versions as migrations
from coordinator.store.schema import VERSION


def test_the_program_asks_for_the_newest_migration() -> None:
    """An older one would leave every start a database to migrate."""
    [place] = migrations.__path__
    newest = max(path.name for path in Path(place).glob("v[0-9]*.py"))
    assert newest.startswith(f"v{VERSION}_")
