"""The desk for the depot: gives out tickets, and knows where it is."""

import logging
from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from pathlib import Path
from secrets import token_hex

from coordinator.companions.depot_names import TreeNames
from coordinator.companions.places import listens_after, told_address
from coordinator.depot.messages import (
    DepotDeskMessage,
    DepotHello,
    DepotIdentity,
    DepotMessage,
    DepotServes,
    DepotWelcome,
)
from muster.domain.data.depot_use import DepotUse
from muster.trust.depot_ticket import DEPOT_TICKET_LIFE, DepotOperation, DepotTicket, make_depot_ticket
from muster.trust.identity import Identity
from muster.trust.tickets import TicketPurpose, ticket_key

log = logging.getLogger(__name__)

_TOLD_AT_ONCE = 32
"""Lines that are told at once; the longest name some hundred trees."""

_DEPOT_AFTER = 3
"""The depot's port is so many after that for clients."""


class DepotDesk:
    """What the coordinator knows of its depot; works without one, too."""

    def __init__(
        self, secret: bytes, listen: str, identity: Callable[[], Identity] | None, known: Path | None = None
    ) -> None:
        """`listen`: where clients are served; `identity`: the certificate that counts now, None: there is no TLS.

        `known`: the file that says for ever that a depot was here; None: that is forgotten with this process.
        """
        self._key = ticket_key(secret, TicketPurpose.DEPOT)
        self._listen = listens_after(listen, _DEPOT_AFTER)
        self._identity = identity
        self._known = known
        self._connected = False
        self._served = ""
        """Where the depot is, or was last."""
        self._news: list[DepotDeskMessage] = []
        self.names = TreeNames(self._say)
        """What it is told of trees that jobs name."""
        self.use: DepotUse | None = None
        """What it held when it was looked through last; None: not yet."""
        self.stir: Callable[[], None] = _nothing
        """Called when there is something to tell the depot."""

    @property
    def address(self) -> str | None:
        """HOST:PORT of the depot, without a host where that is the coordinator's; None: no depot is connected."""
        if not self._connected or not self._served:
            return None
        return told_address(self._served, self._listen)

    @property
    def expected(self) -> bool:
        """Whether the fleet has a depot, which may be away just now."""
        return bool(self._served) or self._connected or (self._known is not None and self._known.exists())

    def put_ticket(self, *, project: str, account: str, room: int, limit: int, now: datetime) -> str:
        """What a client shows that sends objects, so many bytes at most; `limit`: of what its project keeps in all."""
        return self._signed(
            DepotTicket(
                operation=DepotOperation.PUT,
                ticket=token_hex(8),
                project=project,
                account=account,
                room=room,
                limit=limit,
                not_after=now + DEPOT_TICKET_LIFE,
            )
        )

    def get_ticket(self, tree: str, *, project: str, account: str, now: datetime) -> str:
        """What a node or client shows that fetches a tree."""
        return self._signed(
            DepotTicket(
                operation=DepotOperation.GET,
                ticket=token_hex(8),
                project=project,
                account=account,
                tree=tree,
                not_after=now + DEPOT_TICKET_LIFE,
            )
        )

    def look_again(self) -> None:
        """Give the depot the certificate that counts now, if it has another one."""
        if self._identity is not None:
            self._say([DepotIdentity(identity=self._identity())])

    def welcome(self, first: DepotMessage) -> list[DepotDeskMessage]:
        """Everything that a depot must know which has just come; nothing where it does not begin with its hello."""
        if not isinstance(first, DepotHello):
            return []
        before, self._served = self._served, ""
        self._connected = True
        self._note_it()
        self._news.clear()
        self.names.left()
        identity = None if self._identity is None else self._identity()
        return [DepotWelcome(key=self._key, listen=self._listen, before=before, identity=identity)]

    def hear(self, message: DepotMessage) -> None:
        """Take in what the depot says."""
        match message:
            case DepotServes(listen=listen):
                self._served = listen
            case DepotHello():
                pass  # the first line alone has a meaning
            case _:
                self.names.hear(message)

    def left(self) -> None:
        """Note that the depot is not connected any more."""
        self._connected = False
        self.names.left()

    def take(self) -> list[DepotDeskMessage]:
        """What the depot is to be told now, or some of it: what is left stirs again."""
        told, self._news = self._news[:_TOLD_AT_ONCE], self._news[_TOLD_AT_ONCE:]
        if self._news:
            self.stir()
        return told

    async def keep(self, trees: Collection[str]) -> frozenset[str]:
        """Have trees kept that jobs are about to name; those that the depot does not have. Raises UnavailableError."""
        return await self.names.keep(trees)

    def _note_it(self) -> None:
        if self._known is not None:
            try:
                self._known.touch(mode=0o600)
            except OSError as error:
                log.warning("the next coordinator will not know of the depot at once", extra={"cause": str(error)})

    def _say(self, messages: Iterable[DepotDeskMessage]) -> None:
        self._news += messages
        self.stir()

    def _signed(self, ticket: DepotTicket) -> str:
        return make_depot_ticket(self._key, ticket)


def _nothing() -> None:
    pass
