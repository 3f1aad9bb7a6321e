"""Differences: signs that have stayed for long enough, from when they began until they have been away as long again."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from muster.domain.telemetry.differences import DifferenceKind, Sign

SIGN_STAYS: Mapping[DifferenceKind, timedelta] = {
    DifferenceKind.USAGE: timedelta(minutes=3),
    DifferenceKind.METRIC: timedelta(0),
    DifferenceKind.BEHIND: timedelta(minutes=2),
    DifferenceKind.SILENT: timedelta(0),
}
"""The time for which a sign has to be there; those of points tell of several of them by themselves."""
LEAST_STAY = timedelta(minutes=3)
"""What counts for the end of a difference whose sign has to be there for no time."""
DIFFERENCE_ENDS_AFTER = 2
"""How many times as long as its sign had to be there it has to be away, until a difference has ended."""
ENDED_KEPT = 100
"""Differences of one attempt that have ended, and are still told."""
LONGEST_UNSEEN = timedelta(minutes=1)
"""The time without word of a rank after which a sign of it begins anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A rank that is unlike the others of its role."""

    rank: int
    kind: DifferenceKind
    what: str
    """The quantity, or the key of the number; empty for the other kinds."""
    since: datetime
    until: datetime | None = None
    """When it was seen last; None: it goes on."""
    text: str
    """One sentence for people, without the rank."""


@dataclass(frozen=True, slots=True)
class _Seen:
    since: datetime
    last: datetime
    told: Difference | None = None


SignKey = tuple[int, DifferenceKind, str]


class DifferenceBook:
    """The differences of one attempt."""

    def __init__(self) -> None:
        self._seen: dict[SignKey, _Seen] = {}
        self._ended: list[Difference] = []

    def note(
        self, now: datetime, signs: Iterable[Sign], looked_at: Mapping[DifferenceKind, Collection[int]]
    ) -> list[Difference]:
        """Take in the signs of a moment; the differences that begin with them, each told once.

        `looked_at` has the ranks of which something was known: what is not known is no sign, and no lack of one.
        """
        begun: list[Difference] = []
        there = {(sign.rank, sign.kind, sign.what): sign for sign in signs}
        for key, sign in there.items():
            seen = self._seen.get(key)
            if seen is None or (seen.told is None and now - seen.last > LONGEST_UNSEEN):
                seen = _Seen(now, now)
            told = seen.told
            if told is None and now - seen.since >= SIGN_STAYS[sign.kind]:
                told = Difference(rank=sign.rank, kind=sign.kind, what=sign.what, since=seen.since, text=sign.told)
                begun.append(told)
            self._seen[key] = _Seen(seen.since, now, told)
        for key in [key for key in self._seen if key not in there and key[0] in looked_at.get(key[1], ())]:
            self._miss(key, now)
        return begun

    @property
    def told(self) -> Iterator[Difference]:
        """All differences, those that have ended first."""
        yield from self._ended
        yield from (seen.told for seen in self._seen.values() if seen.told is not None)

    def _miss(self, key: SignKey, now: datetime) -> None:
        """A sign is not there, although it would be seen."""
        seen = self._seen[key]
        if seen.told is None:
            del self._seen[key]
        elif now - seen.last >= DIFFERENCE_ENDS_AFTER * max(SIGN_STAYS[key[1]], LEAST_STAY):
            del self._seen[key]
            self._ended = [*self._ended, replace(seen.told, until=seen.last)][-ENDED_KEPT:]
