"""What one viewer may see of the mirror, and what of it is news to them."""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from console.mirror.mirror import QUEUE_KEY, Mirror
from console.mirror.rows import EncodedJson, joined
from muster.domain.feed import FeedKey, FeedPart
from muster.domain.fleet.access import Myself, seen_projects
from muster.domain.revisions import Revised

BRIEF_JOBS = "job_rows"
"""The name under which jobs are told as lists show them."""
LIVE_ROWS = 500
"""Rows of one event of a live stream."""


@dataclass(frozen=True, slots=True)
class ViewerRights:
    """What somebody may look at."""

    name: str
    """The account."""
    projects: frozenset[str] | None
    """None: all."""

    @classmethod
    def of(cls, myself: Myself) -> "ViewerRights":
        """The rights that the coordinator has told."""
        return cls(myself.name, seen_projects(myself.grants))

    @property
    def nothing(self) -> bool:
        """Whether there is no project that they may look at, and so nothing else either."""
        return self.projects is not None and not self.projects

    def sees(self, scope: str) -> bool:
        """Whether they may look at what belongs there."""
        return not self.nothing and (not scope or self.projects is None or scope in self.projects)

    @property
    def digest(self) -> str:
        """A name for what they see: another one for whoever sees more or less."""
        seen = "*" if self.projects is None else "\n".join(sorted(self.projects))
        return hashlib.sha256(seen.encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class LiveEvent:
    """News for a viewer."""

    data: EncodedJson
    place: str
    """Shown again, the viewer goes on after this event; empty: it is the middle of something."""


class LiveView:
    """How far one viewer has come."""

    def __init__(
        self, rights: ViewerRights, parts: Collection[FeedPart], place: str = "", *, brief_jobs: bool = False
    ) -> None:
        """`place`: that of the last event which the viewer has seen. `brief_jobs`: also what lists show of jobs."""
        self._rights = rights
        self._parts = frozenset(parts)
        self._brief_jobs = brief_jobs
        self._instance, self._known = _read(place, rights)

    def news(self, mirror: Mirror) -> Sequence[LiveEvent]:
        """What the viewer does not know yet, in pieces; the mirror has caught up."""
        changes, anew = mirror.changes, False
        if mirror.place.instance != self._instance or not changes.complete_from <= self._known <= changes.newest:
            self._instance, self._known, anew = mirror.place.instance, 0, True
        found = [each for each in changes.since(self._known) if self._concerns(each) and (each.there or not anew)]
        self._known = changes.newest
        if not found and not anew:
            return ()
        pieces = [found[start : start + LIVE_ROWS] for start in range(0, len(found), LIVE_ROWS)] or [[]]
        last = f"{self._instance}.{self._rights.digest}.{self._known}"
        return [
            LiveEvent(self._told(mirror, piece, anew=anew and not number), last if number == len(pieces) - 1 else "")
            for number, piece in enumerate(pieces)
        ]

    def _concerns(self, change: Revised[FeedKey]) -> bool:
        part = change.key.part
        is_wanted = part in self._parts or (self._brief_jobs and part is FeedPart.JOBS)
        return is_wanted and self._rights.sees(change.scope)

    def _told(self, mirror: Mirror, changes: Sequence[Revised[FeedKey]], *, anew: bool) -> EncodedJson:
        told: dict[str, bytes] = {"anew": b"true"} if anew else {}
        rows: dict[str, list[bytes]] = {}
        gone: dict[str, list[bytes]] = {}
        for each in changes:
            if each.key == QUEUE_KEY:
                told["queue"] = queue_of(mirror, self._rights)
                continue
            for name, is_brief in self._names(each.key.part):
                if each.there:
                    row = mirror.rows[each.key]
                    rows.setdefault(name, []).append(row.brief if is_brief and row.brief else row.data)
                else:
                    gone.setdefault(name, []).append(b'"' + each.key.name.encode() + b'"')
        told |= {name: joined(found) for name, found in rows.items()}
        told |= {f"{name}_gone": joined(found) for name, found in gone.items()}
        return _object(told)

    def _names(self, part: FeedPart) -> Iterator[tuple[str, bool]]:
        """The names under which the rows of a part are told, and whether briefly."""
        if part in self._parts:
            yield str(part), False
        if self._brief_jobs and part is FeedPart.JOBS:
            yield BRIEF_JOBS, True


def queue_of(mirror: Mirror, rights: ViewerRights) -> EncodedJson:
    """The first lines of the queue, without names where the viewer may not look at the job."""
    return joined([line.named if rights.sees(line.project) else line.unnamed for line in mirror.queue])


def _object(values: Mapping[str, bytes]) -> EncodedJson:
    return EncodedJson(b"{" + b",".join(b'"' + name.encode() + b'":' + value for name, value in values.items()) + b"}")


def _read(place: str, rights: ViewerRights) -> tuple[str, int]:
    """The instance and revision of a place; nothing where it is of other rights."""
    instance, _, rest = place.partition(".")
    digest, _, revision = rest.partition(".")
    if digest != rights.digest or not revision.isdecimal() or len(revision) > len(str(2**63)):
        return "", 0
    return instance, int(revision)
