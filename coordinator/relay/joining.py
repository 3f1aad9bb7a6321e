"""Which streams are joined to which, and whose tickets count; pure: streams are numbers here, and the time is told.

A ticket opens the first stream of its side until its time is over. It opens further ones as long as its attachment is
known here, or the coordinator lists it as open. So both sides come again after a break, after a restart of the relay,
and while the coordinator is away; a ticket that was lost or copied is worth nothing once its attachment is closed.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from coordinator.relay.messages import AttachmentCarried
from muster.domain.ids import NodeId
from muster.rpc.relay import RelayEnding
from muster.trust.tickets import TICKET_LIFE, AttachmentTicket, TicketSide

RELAY_STREAMS = 4_000
"""Streams that a relay carries at once, two for each attachment, unless its settings say otherwise."""

AWAY_FORGOTTEN = timedelta(minutes=15)
"""How long an attachment is known of which neither side is there; longer than any side may be away."""

MOST_ATTACHMENTS_KNOWN = 20_000
"""Attachments that are known at once; beyond these the ones whose sides are away for longest are forgotten."""

RELAY_FULL = "the relay carries as many streams as it may (`muster-relay --relay-streams`); try again later"

CLOSED_KNOWN = 2 * TICKET_LIFE
"""How long it is known that an attachment was closed; after that its tickets are too old."""

OTHER_SIDE_WITHIN = 30
"""Seconds that a stream waits for the other side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEnd:
    """A stream is to end."""

    stream: int
    ending: RelayEnding
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnedAway:
    """A stream is not let in."""

    ending: RelayEnding
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """A stream is let in."""

    stream: int
    """The number of the stream."""
    account: str
    """The account that attaches."""
    peer: int | None
    """The stream that it is joined to; None: it waits for one."""
    ends: tuple[StreamEnd, ...] = ()
    """Streams that have to make room for it."""


@dataclass(slots=True, kw_only=True)
class _Known:
    """An attachment."""

    account: str
    node: NodeId
    streams: dict[TicketSide, int] = field(default_factory=dict)
    joined: bool = False
    """Whether both streams are joined; a stream that is never joined to a second one."""
    moved: dict[TicketSide, int] = field(default_factory=lambda: dict.fromkeys(TicketSide, 0))
    """Bytes that each side has sent."""


class JoinTable:
    """All attachments that the relay knows."""

    def __init__(self, most_streams: int = RELAY_STREAMS) -> None:
        self.most_streams = most_streams
        self._known: dict[str, _Known] = {}
        self._streams: dict[int, tuple[str, TicketSide]] = {}
        self._away: dict[str, datetime] = {}
        """When the last stream left, of attachments without any; the oldest first."""
        self._open: set[str] = set()
        self._closed: dict[str, tuple[datetime, TurnedAway]] = {}
        self._changed: dict[str, None] = {}
        """Attachments of which the coordinator is to be told, the oldest news first."""
        self._last = 0

    @property
    def streams(self) -> int:
        """Streams that are there."""
        return len(self._streams)

    def arrive(self, ticket: AttachmentTicket, now: datetime) -> Admitted | TurnedAway:
        """Let a stream in that shows a ticket, or not."""
        attachment, side = ticket.attachment, ticket.side
        if attachment in self._closed:
            return self._closed[attachment][1]
        known = self._known.get(attachment)
        if known is None and attachment not in self._open and now > ticket.not_after:
            text = f"the ticket was good until {ticket.not_after:%H:%M:%S} UTC, and its attachment is not open any more"
            return TurnedAway(ending=RelayEnding.REFUSED, text=text)
        if self.streams >= self.most_streams and not (known and side in known.streams):
            return TurnedAway(ending=RelayEnding.FULL, text=RELAY_FULL)
        if known is None:
            known = self._known[attachment] = _Known(account=ticket.account, node=ticket.node)
        self._away.pop(attachment, None)
        ends = self._room_for(known, side)
        self._last += 1
        self._streams[self._last] = attachment, side
        known.streams[side] = self._last
        peer = known.streams.get(side.other)
        known.joined = peer is not None
        self._changed[attachment] = None
        return Admitted(stream=self._last, account=ticket.account, peer=peer, ends=ends)

    def leave(self, stream: int, now: datetime) -> tuple[StreamEnd, ...]:
        """Take a stream out that has ended by itself; gives the one that ends with it."""
        place = self._streams.get(stream)
        if place is None:
            return ()
        attachment, side = place
        known = self._known[attachment]
        self._take_out(known, side)
        ends: tuple[StreamEnd, ...] = ()
        if known.joined:
            known.joined = False
            peer = self._take_out(known, side.other)
            ends = (_broken(peer, f"the stream of the {side} has ended; come again"),)
        self._note_away(attachment, known, now)
        return ends

    def given_up(self, stream: int, now: datetime) -> tuple[StreamEnd, ...]:
        """The end of a stream that has waited for long enough, where it still waits."""
        place = self._streams.get(stream)
        if place is None or self._known[place[0]].joined:
            return ()
        attachment, side = place
        known = self._known[attachment]
        self._take_out(known, side)
        self._note_away(attachment, known, now)
        who = f"the agent of {known.node}" if side is TicketSide.CLIENT else f"the client of {known.account}"
        more = f"; `muster nodes {known.node}` tells more" if side is TicketSide.CLIENT else ""
        text = f"{who} did not come within {OTHER_SIDE_WITHIN} s{more}"
        return (StreamEnd(stream=stream, ending=RelayEnding.ALONE, text=text),)

    def moved(self, stream: int, size: int) -> None:
        """Count what a stream has sent to the other one."""
        place = self._streams.get(stream)
        if place is not None:
            attachment, side = place
            self._known[attachment].moved[side] += size
            self._changed[attachment] = None

    def open(self, attachment: str) -> None:
        """Have tickets of an attachment count until it is closed."""
        self._open.add(attachment)

    def list_open(self, attachments: Iterable[str]) -> None:
        """Have these be all that the coordinator calls open."""
        self._open = set(attachments)

    def close(self, attachment: str, why: str, now: datetime, *, lost: bool = False) -> tuple[StreamEnd, ...]:
        """Have no ticket of an attachment count any more; gives its streams, which end.

        `lost`: nobody has closed it.
        """
        ending = RelayEnding.LOST if lost else RelayEnding.CLOSED
        self._open.discard(attachment)
        self._closed[attachment] = now, TurnedAway(ending=ending, text=why)
        known = self._known.pop(attachment, None)
        self._away.pop(attachment, None)
        self._changed.pop(attachment, None)
        if known is None:
            return ()
        for stream in known.streams.values():
            del self._streams[stream]
        return tuple(StreamEnd(stream=stream, ending=ending, text=why) for stream in known.streams.values())

    def close_all(self, why: str, now: datetime) -> tuple[StreamEnd, ...]:
        """Close every attachment that is known or open; gives all streams, which end."""
        return tuple(end for each in {*self._known, *self._open} for end in self.close(each, why, now))

    def forget(self, now: datetime) -> tuple[str, ...]:
        """Forget what was closed, or away, for long enough; gives the attachments that were away."""
        for attachment in [each for each, (at, _) in self._closed.items() if now - at > CLOSED_KNOWN]:
            del self._closed[attachment]
        too_many = len(self._known) - MOST_ATTACHMENTS_KNOWN
        gone = [
            attachment
            for place, (attachment, since) in enumerate(self._away.items())
            if place < too_many or now - since > AWAY_FORGOTTEN
        ]
        for attachment in gone:
            del self._away[attachment], self._known[attachment]
            self._changed.pop(attachment, None)
        return tuple(gone)

    def news(self, most: int) -> list[AttachmentCarried]:
        """What has changed since it was told last, at most so many."""
        told = [self._carried(each) for each, _ in zip(self._changed, range(most), strict=False)]
        for each in told:
            del self._changed[each.attachment]
        return told

    def tell_all(self) -> None:
        """Have everything be news, as for a coordinator that knows nothing yet."""
        self._changed = dict.fromkeys(self._known)

    def _room_for(self, known: _Known, side: TicketSide) -> tuple[StreamEnd, ...]:
        """Take out what cannot be beside a new stream of this side.

        The other side's stream ends, too, if it was joined to the older one: on the new one both must say first what
        has come of the other.
        """
        if side not in known.streams:
            return ()
        older = StreamEnd(
            stream=self._take_out(known, side),
            ending=RelayEnding.REPLACED,
            text=f"a newer stream of the {side} has taken the place of this one",
        )
        if not known.joined:
            return (older,)
        known.joined = False
        return older, _broken(self._take_out(known, side.other), f"the {side} has come anew; come again")

    def _take_out(self, known: _Known, side: TicketSide) -> int:
        stream = known.streams.pop(side)
        attachment, _ = self._streams.pop(stream)
        self._changed[attachment] = None
        return stream

    def _note_away(self, attachment: str, known: _Known, now: datetime) -> None:
        if not known.streams:
            self._away[attachment] = now

    def _carried(self, attachment: str) -> AttachmentCarried:
        known = self._known[attachment]
        return AttachmentCarried(
            attachment=attachment,
            account=known.account,
            node=known.node,
            client=TicketSide.CLIENT in known.streams,
            agent=TicketSide.AGENT in known.streams,
            bytes_in=known.moved[TicketSide.CLIENT],
            bytes_out=known.moved[TicketSide.AGENT],
        )


def _broken(stream: int, text: str) -> StreamEnd:
    return StreamEnd(stream=stream, ending=RelayEnding.BROKEN, text=text)
