"""The desk for the depot: gives out tickets, and knows where it is."""

from collections.abc import Callable
from datetime import datetime
from secrets import token_hex

from coordinator.companions.places import listens_after, told_address
from coordinator.depot.messages import (
    DepotDeskMessage,
    DepotHello,
    DepotIdentity,
    DepotMessage,
    DepotServes,
    DepotWelcome,
)
from muster.trust.depot_ticket import DEPOT_TICKET_LIFE, DepotOperation, DepotTicket, make_depot_ticket
from muster.trust.identity import Identity
from muster.trust.tickets import TicketPurpose, ticket_key

_DEPOT_AFTER = 3
"""The depot's port is so many after that for clients."""


class DepotDesk:
    """What the coordinator knows of its depot; works without one, too."""

    def __init__(self, secret: bytes, listen: str, identity: Callable[[], Identity] | None) -> None:
        """`listen`: where clients are served; `identity`: the certificate that counts now, None: there is no TLS."""
        self._key = ticket_key(secret, TicketPurpose.DEPOT)
        self._listen = listens_after(listen, _DEPOT_AFTER)
        self._identity = identity
        self._connected = False
        self._served = ""
        """Where the depot is, or was last."""
        self._news: list[DepotDeskMessage] = []
        self.stir: Callable[[], None] = _nothing
        """Called when there is something to tell the depot."""

    @property
    def address(self) -> str | None:
        """HOST:PORT of the depot, without a host where that is the coordinator's; None: no depot is connected."""
        if not self._connected or not self._served:
            return None
        return told_address(self._served, self._listen)

    def put_ticket(self, *, project: str, account: str, room: int, now: datetime) -> str:
        """What a client shows that sends objects, so many bytes at most."""
        return self._ticket(DepotOperation.PUT, project, account, now, room=room)

    def get_ticket(self, tree: str, *, project: str, account: str, now: datetime) -> str:
        """What a node or client shows that fetches a tree."""
        return self._ticket(DepotOperation.GET, project, account, now, tree=tree)

    def look_again(self) -> None:
        """Give the depot the certificate that counts now, if it has another one."""
        if self._identity is not None:
            self._news = [DepotIdentity(identity=self._identity())]
            self.stir()

    def welcome(self, first: DepotMessage) -> list[DepotDeskMessage]:
        """Everything that a depot must know which has just come; nothing where it does not begin with its hello."""
        if not isinstance(first, DepotHello):
            return []
        before, self._served = self._served, ""
        self._connected = True
        self._news.clear()
        identity = None if self._identity is None else self._identity()
        return [DepotWelcome(key=self._key, listen=self._listen, before=before, identity=identity)]

    def hear(self, message: DepotMessage) -> None:
        """Take in what the depot says."""
        match message:
            case DepotServes(listen=listen):
                self._served = listen
            case DepotHello():
                pass  # the first line alone has a meaning

    def left(self) -> None:
        """Note that the depot is not connected any more."""
        self._connected = False

    def take(self) -> list[DepotDeskMessage]:
        """What the depot is to be told now."""
        told, self._news = self._news, []
        return told

    def _ticket(
        self, operation: DepotOperation, project: str, account: str, now: datetime, *, tree: str = "", room: int = 0
    ) -> str:
        return make_depot_ticket(
            self._key,
            DepotTicket(
                operation=operation,
                ticket=token_hex(8),
                project=project,
                account=account,
                tree=tree,
                room=room,
                not_after=now + DEPOT_TICKET_LIFE,
            ),
        )


def _nothing() -> None:
    pass
