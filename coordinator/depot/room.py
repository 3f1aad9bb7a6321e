"""How much may still be put into the depot: by ticket, and by what is free on its disk; pure."""

from datetime import datetime

from coordinator.depot.limits import DEPOT_KEEPS_FREE
from muster.domain.errors import ExhaustedError, PermissionDeniedError
from muster.domain.quantity import size_text
from muster.trust.depot_ticket import DepotTicket


class TicketRoom:
    """What was taken in by ticket, for as long as its ticket counts."""

    def __init__(self) -> None:
        self._taken: dict[str, dict[str, int]] = {}
        self._until: dict[str, datetime] = {}

    def take(self, ticket: DepotTicket, digest: str, size: int) -> None:
        """Count an object against its ticket, once however often it comes. Raises PermissionDeniedError."""
        taken = self._taken.setdefault(ticket.ticket, {})
        self._until[ticket.ticket] = ticket.not_after
        used = sum(taken.values()) - taken.get(digest, 0)
        if used + size > ticket.room:
            raise PermissionDeniedError(
                f"project {ticket.project} has room for {size_text(ticket.room)} more in the depot, and this needs "
                f"{size_text(used + size)}: delete jobs whose outputs nobody needs, or have the limit raised"
            )
        taken[digest] = size

    def forget(self, now: datetime) -> None:
        """Forget tickets whose time is over."""
        for each in [name for name, until in self._until.items() if until <= now]:
            del self._taken[each], self._until[each]


def refuse_full(size: int, free: int, total: int) -> None:
    """Raise ExhaustedError where an object would leave less of the disk free than must be."""
    least = total * DEPOT_KEEPS_FREE // 100
    if free - size < least:
        raise ExhaustedError(
            f"the disk of the depot has {size_text(free)} free and keeps {size_text(least)} of it free; "
            f"{size_text(size)} more do not fit: delete jobs whose outputs nobody needs, "
            "or give the depot a larger disk (--depot-dir)"
        )
