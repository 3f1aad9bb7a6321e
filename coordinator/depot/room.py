"""How much may still be put into the depot: by ticket, and by what is free on its disk; pure."""

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


def refuse_full(size: int, free: int, total: int) -> None:
    """Raise ExhaustedError where an object would leave less of the disk free than must be."""
    least = total * DEPOT_KEEPS_FREE // 100
    if free - size < least:
        raise ExhaustedError(
            f"the disk of the depot has {size_text(free)} free and keeps {size_text(least)} of it free; "
            f"{size_text(size)} more do not fit: delete jobs whose outputs nobody needs, "
            "or give the depot a larger disk (--depot-dir)"
        )
