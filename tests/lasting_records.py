"""What lasts of the coordinator's records when it starts anew."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from coordinator.core.cluster.cluster import LONG_AGO
from coordinator.core.records import Attempt, Execution, Node, Record


def lasting(records: Iterable[Record]) -> Iterator[Record]:
    """Records without the times that a start tells anew, by its own clock."""
    for record in records:
        if isinstance(record, Attempt) and (record.not_before or record.queued_since) is not None:
            yield replace(record, not_before=None, fenced_until=None, fence_noted_at=None, queued_since=None)
        elif isinstance(record, Execution) and (record.silent_until or record.last_permit_at) is not None:
            yield replace(record, silent_until=None, last_permit_at=None)
        elif isinstance(record, Node) and record.taints:
            yield replace(record, taints=tuple(replace(taint, since=LONG_AGO) for taint in record.taints))
        else:
            yield record


class LastingRecords:
    """What lasts of records that are looked at again and again; those that are still the same are not made anew."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Record, Record]] = {}
        """Each record of the last look beside what lasts of it, by its place in memory, which is its own by that."""

    def of(self, *many: Iterable[Record]) -> list[tuple[Record, ...]]:
        """What lasts of each of these."""
        known: dict[int, tuple[Record, Record]] = {}

        def kept(record: Record) -> Record:
            key = id(record)
            pair = known.get(key) or self._known.get(key) or (record, next(lasting((record,))))
            known[key] = pair
            return pair[1]

        found = [tuple(map(kept, records)) for records in many]
        self._known = known
        return found
