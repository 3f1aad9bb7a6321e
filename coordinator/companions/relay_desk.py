"""The desk for the relay: gives out tickets, says which attachments are open, and hears what became of them."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from coordinator.companions.places import listens_after, told_address
from coordinator.relay.messages import (
    AttachmentCarried,
    AttachmentClosed,
    AttachmentForgotten,
    AttachmentOpen,
    DeskMessage,
    RelayHello,
    RelayIdentity,
    RelayListed,
    RelayMessage,
    RelayServes,
    RelayWelcome,
)
from muster.domain.ids import NodeId
from muster.trust.identity import Identity
from muster.trust.tickets import (
    TICKET_LIFE,
    AttachmentTicket,
    TicketPurpose,
    TicketSide,
    make_ticket,
    ticket_key,
)

CLOSED_KEPT = 10_000
"""Closed attachments that are remembered for a relay that was away meanwhile, the last ones."""

_RELAY_AFTER = 2
"""The relay's port is so many after that for clients."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What the relay has carried of an attachment, as it told last: every two seconds, while bytes move."""

    bytes_in: int = 0
    """From the client to the agent."""
    bytes_out: int = 0
    """From the agent to the client."""
    client: bool = False
    """Whether the client's stream is there."""
    agent: bool = False
    """Whether the agent's stream is there."""


@dataclass(slots=True)
class _Told:
    """An attachment as the relay told of it."""

    before: Traffic
    """Sums of relays that have ended since."""
    now: AttachmentCarried | None = None


@dataclass(slots=True)
class _Relay:
    """The relay that is there, or was last."""

    run: str = ""
    connected: bool = False
    served: str = ""
    """Where it serves."""


class _Earlier:
    """Attachments of an earlier coordinator, until the agents of their nodes have told this one what they serve."""

    def __init__(self) -> None:
        self._came: set[NodeId] = set()
        self._waiting: dict[NodeId, set[str]] = {}

    def is_lost(self, attachment: str, node: NodeId) -> bool:
        """Whether an attachment that is not known here is served by nobody; else it waits for its node."""
        if node in self._came:
            return True
        self._waiting.setdefault(node, set()).add(attachment)
        return False

    def came(self, node: NodeId) -> Collection[str]:
        """Note that a node has come; the attachments that have waited for it."""
        self._came.add(node)
        return self._waiting.pop(node, ())


class RelayDesk:
    """What the coordinator knows of its relay; works without one, too."""

    def __init__(self, secret: bytes, fleet: str, listen: str, identity: Callable[[], Identity] | None) -> None:
        """`listen`: where clients are served; `identity`: the certificate that counts now, None: there is no TLS."""
        self._key = ticket_key(secret, TicketPurpose.ATTACHMENT)
        self._fleet = fleet
        self._listen = listens_after(listen, _RELAY_AFTER)
        self._identity = identity
        self._relay = _Relay()
        self._open: dict[str, bool] = {}
        """Attachments that count as open, and whether they were taken over from a coordinator before this one."""
        self._earlier = _Earlier()
        self._closed: dict[str, AttachmentClosed] = {}
        self._told: dict[str, _Told] = {}
        self.stir: Callable[[], None] = _nothing
        """Called when there is something to tell the relay."""
        self._news: dict[str, DeskMessage] = {}

    @property
    def address(self) -> str | None:
        """HOST:PORT of the relay, without a host where that is the coordinator's; None: no relay is connected."""
        if not self._relay.connected or not self._relay.served:
            return None
        return told_address(self._relay.served, self._listen)

    @property
    def carried(self) -> Mapping[str, AttachmentCarried]:
        """All attachments of which the relay has told, those of an earlier coordinator included, by their names."""
        return {name: told.now for name, told in self._told.items() if told.now is not None}

    def ticket(self, attachment: str, side: TicketSide, *, account: str, node: NodeId, now: datetime) -> str:
        """What a side shows the relay: within a minute first, then while the attachment is open."""
        return make_ticket(
            self._key,
            AttachmentTicket(attachment=attachment, side=side, account=account, node=node, not_after=now + TICKET_LIFE),
        )

    def opened(self, attachment: str) -> None:
        """Have an attachment count as open from here on."""
        self._open[attachment] = False
        self._tell(attachment, AttachmentOpen(attachment=attachment))

    def came(self, node: NodeId) -> None:
        """A node has come, and all that it serves counts as open: what else was open there is lost."""
        for attachment in self._earlier.came(node):
            if self._open.get(attachment):
                self.close(attachment, _restarted(node), lost=True)

    def close(self, attachment: str, why: str, *, lost: bool = False) -> None:
        """End both streams of an attachment at the relay with a sentence; repeats do no harm.

        The status is PERMISSION_DENIED, or FAILED_PRECONDITION where it was lost and nobody has closed it.
        """
        self._open.pop(attachment, None)
        self._closed.pop(attachment, None)
        closed = self._closed[attachment] = AttachmentClosed(attachment=attachment, why=why, lost=lost)
        if len(self._closed) > CLOSED_KEPT:
            oldest = next(iter(self._closed))
            del self._closed[oldest]
            self._told.pop(oldest, None)
        self._tell(attachment, closed)

    def traffic(self, attachment: str) -> Traffic:
        """What was carried of an attachment; also for a while after it was closed."""
        told = self._told.get(attachment)
        if told is None:
            return Traffic()
        if told.now is None:
            return told.before
        return Traffic(
            bytes_in=told.before.bytes_in + told.now.bytes_in,
            bytes_out=told.before.bytes_out + told.now.bytes_out,
            client=told.now.client and attachment not in self._closed,
            agent=told.now.agent and attachment not in self._closed,
        )

    def look_again(self) -> None:
        """Give the relay the certificate that counts now, if it has another one."""
        if self._identity is not None:
            self._tell("", RelayIdentity(identity=self._identity()))

    def welcome(self, first: RelayMessage) -> list[DeskMessage]:
        """Everything that a relay must know which has just come; nothing where it does not begin with its hello."""
        return self._greeted(first) if isinstance(first, RelayHello) else []

    def _greeted(self, hello: RelayHello) -> list[DeskMessage]:
        if hello.run != self._relay.run:
            for told in self._told.values():
                _settle(told)
        before, self._relay.served = self._relay.served, ""
        self._relay.run, self._relay.connected = hello.run, True
        self._news.clear()
        identity = None if self._identity is None else self._identity()
        return [
            RelayWelcome(fleet=self._fleet, key=self._key, listen=self._listen, before=before, identity=identity),
            *self._closed.values(),
            *(AttachmentOpen(attachment=name) for name in self._open),
            RelayListed(),
        ]

    def hear(self, message: RelayMessage) -> None:
        """Take in what the relay says."""
        match message:
            case RelayServes(listen=listen):
                self._relay.served = listen
            case AttachmentCarried(attachment=name, node=node):
                if name in self._closed or name in self._open:
                    pass
                elif self._earlier.is_lost(name, node):
                    self.close(name, _restarted(node), lost=True)
                else:
                    self._open[name] = True
                    self._tell(name, AttachmentOpen(attachment=name))
                self._told.setdefault(name, _Told(Traffic())).now = message
            case AttachmentForgotten(attachment=name):
                if name in self._told:
                    _settle(self._told[name])
                if self._open.get(name):
                    self.close(name, "both sides were away for too long", lost=True)
            case RelayHello():
                pass  # the first line alone has a meaning

    def left(self) -> None:
        """Note that the relay is not connected any more; its streams may go on all the same."""
        self._relay.connected = False

    def take(self) -> list[DeskMessage]:
        """What the relay is to be told now."""
        told = list(self._news.values())
        self._news.clear()
        return told

    def _tell(self, about: str, message: DeskMessage) -> None:
        """Only the last word about an attachment is told."""
        self._news.pop(about, None)
        self._news[about] = message
        self.stir()


def _restarted(node: NodeId) -> str:
    return f"the agent of {node} was restarted"


def _settle(told: _Told) -> None:
    """Add up what a relay has told that counts from 0 again."""
    if told.now is not None:
        told.before = Traffic(
            bytes_in=told.before.bytes_in + told.now.bytes_in, bytes_out=told.before.bytes_out + told.now.bytes_out
        )
        told.now = None


def _nothing() -> None:
    pass
