"""Records in the bodies of rows."""

from collections.abc import Iterable

from sqlalchemy import Table

from coordinator.store.codec import RecordT, decode
from coordinator.store.store import StoreError


def decoded(table: Table, kind: type[RecordT], bodies: Iterable[str]) -> Iterable[RecordT]:
    """The records of these bodies; raises StoreError for one that cannot be read."""
    for body in bodies:
        try:
            yield decode(kind, body)
        except ValueError as error:
            raise StoreError(
                f"the table {table.name} holds a record that cannot be read: {error}. "
                "Put a backup of the database in its place (see docs/storage.md)",
            ) from error
