"""The audit log in the database: entries are chained as they are added, read in pages, removed when they are old."""

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, delete, func, insert, select

from coordinator.store.dialect import alone
from coordinator.store.trust import schema
from coordinator.trust.records import AuditWish
from muster.domain.fleet.access import AuditAnchor, AuditEntry
from muster.domain.fleet.audit_chain import hash_at

_FIELDS = tuple(each.name for each in fields(AuditEntry))
_DELETED_AT_ONCE = 10_000
"""Most entries that one transaction removes; others wait for it."""


def add(connection: Connection, entries: Sequence[AuditEntry]) -> None:
    """Write entries behind the last one."""
    if entries:
        alone(connection, schema.audit)
        last, rows = _last(connection), []
        number, digest = last.number, last.hash
        for entry in entries:
            number, previous = number + 1, digest
            digest = hash_at(entry, number, previous)
            # `asdict` copies what nobody changes; every order of every client comes here.
            row = {name: getattr(entry, name) for name in _FIELDS}
            row["number"], row["previous"], row["hash"] = number, previous, digest
            rows.append(row)
        connection.execute(insert(schema.audit), rows)


def page(connection: Connection, wish: AuditWish) -> Sequence[AuditEntry]:
    """The entries that are wanted, oldest first."""
    rows = connection.execute(_narrowed(select(schema.audit), wish)).mappings()
    found = [AuditEntry(**row) for row in rows]
    return found if wish.oldest_first else found[::-1]


def anchor(connection: Connection) -> AuditAnchor:
    """The last entry of those that were removed."""
    table = schema.audit_anchors
    row = connection.execute(select(table.c.number, table.c.hash).order_by(table.c.number.desc()).limit(1)).first()
    return AuditAnchor() if row is None else AuditAnchor(number=row.number, hash=row.hash)


def anchored(connection: Connection, before: datetime, most: int | None, now: datetime) -> AuditAnchor | None:
    """A new anchor at the last entry from before a time; None: there is nothing to remove.

    It is not beyond the entry `most`, nor at the newest one.
    """
    table = schema.audit
    newest, kept = connection.execute(
        select(func.max(table.c.number), select(func.min(table.c.number)).where(table.c.at >= before).scalar_subquery())
    ).one()
    if newest is None:
        return None
    last = min(newest - 1, newest if kept is None else kept - 1, newest if most is None else most)
    row = connection.execute(select(table.c.number, table.c.hash).where(table.c.number == last)).first()
    if row is None:
        return None
    found = AuditAnchor(number=row.number, hash=row.hash)
    connection.execute(insert(schema.audit_anchors), {"number": found.number, "hash": found.hash, "at": now})
    return found


def remove(connection: Connection, last: AuditAnchor) -> int:
    """Remove some entries up to an anchor, the oldest first; how many."""
    table = schema.audit
    oldest = connection.execute(select(func.min(table.c.number))).scalar()
    if oldest is None or oldest > last.number:
        return 0
    end = min(last.number, oldest + _DELETED_AT_ONCE - 1)
    connection.execute(delete(table).where(table.c.number <= end))
    return int(end - oldest + 1)


def _last(connection: Connection) -> AuditAnchor:
    table = schema.audit
    row = connection.execute(select(table.c.number, table.c.hash).order_by(table.c.number.desc()).limit(1)).first()
    return anchor(connection) if row is None else AuditAnchor(number=row.number, hash=row.hash)


def _narrowed(query: Select[Any], wish: AuditWish) -> Select[Any]:
    table = schema.audit
    order = table.c.number if wish.oldest_first else table.c.number.desc()
    conditions = []
    if wish.beyond is not None:
        conditions.append(table.c.number > wish.beyond if wish.oldest_first else table.c.number < wish.beyond)
    if wish.since is not None:
        conditions.append(table.c.at >= wish.since)
    if wish.until is not None:
        conditions.append(table.c.at < wish.until)
    if wish.who is not None:
        conditions.append(table.c.who == wish.who)
    return query.where(*conditions).order_by(order).limit(wish.limit)
