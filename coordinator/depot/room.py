"""How much may still be put into the depot: by ticket, and by what is free on its disk; pure."""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime

from coordinator.depot.limits import DEPOT_KEEPS_FREE
from muster.domain.errors import ExhaustedError, PermissionDeniedError
from muster.domain.quantity import size_text
from muster.trust.depot_ticket import DepotTicket


@dataclass(slots=True)
class _Taken:
    """What was taken in by one ticket."""

    until: datetime
    sizes: dict[str, int] = field(default_factory=dict)
    total: int = 0


class TicketRoom:
    """What was taken in by ticket, for as long as its ticket counts."""

    def __init__(self) -> None:
        self._taken: dict[str, _Taken] = {}

    def take(self, ticket: DepotTicket, digest: str, size: int) -> None:
        """Count an object against its ticket, once however often it comes. Raises PermissionDeniedError."""
        taken = self._taken.setdefault(ticket.ticket, _Taken(ticket.not_after))
        used = taken.total - taken.sizes.get(digest, 0) + size
        if used > ticket.room:
            raise PermissionDeniedError(
                f"project {ticket.project} has room for {size_text(ticket.room)} more in the depot, and this needs "
                f"{size_text(used)}: delete jobs whose outputs nobody needs, or have the limit raised"
            )
        taken.sizes[digest], taken.total = size, used

    def forget(self, now: datetime) -> None:
        """Forget tickets whose time is over."""
        self._taken = {name: taken for name, taken in self._taken.items() if taken.until > now}


@dataclass(slots=True)
class _Kept:
    """What a project keeps."""

    named: int = 0
    """Bytes that its jobs named at the last look."""
    sent: dict[str, int] = field(default_factory=dict)
    """Bytes by digest of what it has sent, and no job of it names as far as is known."""
    total: int = 0


class ProjectRoom:
    """What each project keeps: what its jobs named at the last look, and what it has sent since then."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}
        self.on_refused: Callable[[], None] = _nothing
        """Called when something was refused: jobs may have been deleted since the last look."""

    def used(self, project: str) -> int:
        """Bytes that a project keeps."""
        return self._kept[project].total if project in self._kept else 0

    def take(self, ticket: DepotTicket, digest: str, size: int) -> None:
        """Count an object that is new to the depot for its project. Raises ExhaustedError."""
        kept = self._kept.setdefault(ticket.project, _Kept())
        more = size - kept.sent.get(digest, 0)
        self.refuse_over(ticket, more)
        kept.sent[digest] = size
        kept.total += more

    def refuse_over(self, ticket: DepotTicket, more: int) -> None:
        """Raise ExhaustedError where a project may not keep so many bytes more."""
        used, project = self.used(ticket.project), ticket.project
        if more > 0 and used + more > ticket.limit:
            self.on_refused()
            raise ExhaustedError(
                f"project {project} keeps {size_text(used)} in the depot and may keep {size_text(ticket.limit)}; "
                f"{size_text(more)} more do not fit. Delete jobs whose code nobody needs, which counts within a few "
                f"minutes, or have an admin raise it: `muster projects storage {project} --limit SIZE`"
            )

    def looked(self, named: Mapping[str, tuple[int, AbstractSet[str]]], is_here: Callable[[str], bool]) -> None:
        """Note what jobs of each project name, in bytes and digests, after a look at all objects."""
        for project in {*named, *self._kept}:
            size, digests = named.get(project, (0, frozenset[str]()))
            before = self._kept.get(project, _Kept())
            sent = {digest: had for digest, had in before.sent.items() if digest not in digests and is_here(digest)}
            self._kept[project] = _Kept(size, sent, size + sum(sent.values()))


def _nothing() -> None:
    pass


def refuse_full(size: int, free: int, total: int) -> None:
    """Raise ExhaustedError where an object would leave less of the disk free than must be."""
    least = total * DEPOT_KEEPS_FREE // 100
    if free - size < least:
        raise ExhaustedError(
            f"the disk of the depot has {size_text(free)} free and keeps {size_text(least)} of it free; "
            f"{size_text(size)} more do not fit: delete jobs whose outputs nobody needs, "
            "or give the depot a larger disk (--depot-dir)"
        )
