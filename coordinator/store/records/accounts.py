"""What attempts have held, in SQL: rows that the database sums up."""

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, Engine, String, and_, case, cast, delete, func, not_, select

from coordinator.core.records import KeepSpent, SpentChange, TrimSpent
from coordinator.core.spent import EVICTED, Spent, SpentGroup, SpentSums, SpentWaits, SpentWish
from coordinator.store import schema
from coordinator.store.dialect import Written, addition, reading
from muster.domain.fleet.quota import Amounts

_ROWS = schema.spent.c


class SqlAccounts:
    """Keeps what attempts have held."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        table, given = schema.spent, schema.GIVEN_OF_SPENT
        self._add = Written(engine.dialect, table, addition(engine.dialect, table, ("job", "attempt")), given)

    def apply(self, connection: Connection, changes: Iterable[SpentChange]) -> None:
        """Store what attempts have held, and forget the oldest."""
        keep: int | None = None
        rows = []
        for change in changes:
            match change:
                case KeepSpent(spent=spent):
                    rows.append(schema.spent_row(spent))
                case TrimSpent(keep=keep):
                    pass
        if rows:
            self._add.execute(connection, rows)
        if keep is not None:
            newest = select(func.max(_ROWS.number)).scalar_subquery()
            connection.execute(delete(schema.spent).where(_ROWS.number <= newest - keep))

    def sums(self, wish: SpentWish) -> SpentSums:
        """What is kept of a span of time."""
        inside, touching = _inside(wish), _touching(wish)
        keys = [schema.spent.c[word] for word in wish.words]
        evicted = func.sum(case((_ROWS.outcome == EVICTED, 1), else_=0))
        summed = (_ROWS.gpus, _ROWS.cpus, _ROWS.memory, _ROWS.lost, _ROWS.borrowed, _ROWS.busy)
        amounts = map(func.sum, summed)
        grouped = select(*keys, func.count(), evicted, *amounts).where(inside).group_by(*keys).limit(wish.most)
        edges = select(schema.spent).where(touching, not_(inside))
        oldest = select(_ROWS.number, _ROWS.ended_at).order_by(_ROWS.number).limit(1)
        with reading(self._engine) as connection:
            first = connection.execute(oldest).first()
            return SpentSums(
                groups=tuple(_group(wish.words, tuple(row)) for row in connection.execute(grouped)),
                edges=tuple(_spent(dict(row._mapping)) for row in connection.execute(edges)),  # noqa: SLF001 - the public way to names
                kept_since=None if first is None or first[0] == 1 else first[1],
            )

    def waits(self, wish: SpentWish, seen_at: datetime) -> tuple[SpentWaits, ...]:
        """How long attempts were in the queue, by group: the waits of each group come as one text."""
        keys = [schema.spent.c[word] for word in wish.words]
        counted = [_touching(wish), _ROWS.waited.is_not(None), _ROWS.ended_at <= seen_at]
        if wish.since is not None:
            counted.append(_ROWS.placed_at >= wish.since)
        every = func.aggregate_strings(cast(_ROWS.waited, String), ",")
        found = select(*keys, every).where(*counted).group_by(*keys).limit(wish.most)
        with reading(self._engine) as connection:
            return tuple(_waits(wish.words, tuple(row)) for row in connection.execute(found))


def _touching(wish: SpentWish) -> ColumnElement[bool]:
    found = [_ROWS.placed_at < wish.until]
    if wish.since is not None:
        found.append(_ROWS.ended_at > wish.since)
    if wish.projects is not None:
        found.append(_ROWS.project.in_(sorted(wish.projects)))
    if wish.pool:
        found.append(_ROWS.pool == wish.pool)
    return and_(*found)


def _inside(wish: SpentWish) -> ColumnElement[bool]:
    found = [_touching(wish), _ROWS.ended_at <= wish.until]
    return and_(*found, *([] if wish.since is None else [_ROWS.placed_at >= wish.since]))


def _group(words: tuple[str, ...], row: tuple[object, ...]) -> SpentGroup:
    said = dict(zip(words, map(str, row), strict=False))
    *sums, busy = row[len(words) :]
    attempts, evicted, gpus, cpus, memory, lost, borrowed = (int(str(each)) for each in sums)
    return SpentGroup(
        attempts=attempts,
        evicted=evicted,
        held=Amounts(gpus, cpus, memory),
        lost=lost,
        borrowed=borrowed,
        busy=None if busy is None else int(str(busy)),
        **said,
    )


def _waits(words: tuple[str, ...], row: tuple[object, ...]) -> SpentWaits:
    said = dict(zip(words, map(str, row), strict=False))
    return SpentWaits(waits=tuple(int(each) for each in str(row[-1]).split(",")), **said)


def _spent(row: dict[str, object]) -> Spent:
    held = Amounts(*(row.pop(name) for name in ("gpus", "cpus", "memory")))  # type: ignore[arg-type]  # columns of numbers
    row.pop("number")
    return Spent(held=held, **row)  # type: ignore[arg-type]  # the columns are its fields
