"""What an agent says on its streams to the coordinator, and what it makes of what it hears there.

Bytes, sockets and clocks are the link's. All times are seconds of the clock of fencing, and are handed in.
"""

from dataclasses import dataclass
from typing import assert_never

from agent.core.events import Contact, Disconnected, PlanReceived
from muster.domain.gangs.plan import Plan

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0
PAUSE_GROWTH = 1.5
"""Seconds between attempts to connect, and how they grow; whoever waits them adds jitter, so that a fleet does not come
back in one wave.
"""
LASTED = 1.0
"""Seconds after which a stream was a good one, and pauses begin anew."""
HELLO = 0
"""Number of Hello among what is acknowledged; heartbeats count from one."""


# what happens on a stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """There is a stream, and nothing was said on it yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Welcomed:
    """The coordinator has taken Hello in."""

    interval: float
    """Seconds between two heartbeats."""
    lease: float
    """Seconds of silence after which the coordinator is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged:
    """The coordinator has taken a heartbeat in."""

    sequence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanHeard:
    """The coordinator has sent a plan, of which every part is there."""

    plan: Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """The coordinator has sent something else, perhaps something that nobody can read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Broke:
    """The stream has ended, or is of no use any more."""

    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamTimePassed:
    """Time has passed."""


StreamEvent = Opened | Welcomed | Acknowledged | PlanHeard | Heard | Broke | StreamTimePassed


# what is to be done on a stream


@dataclass(frozen=True, slots=True, kw_only=True)
class SayHello:
    """Say the whole truth about the node as it is now; nothing may come before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """Send a heartbeat, with the last plan of a stream that was applied."""

    sequence: int
    stream: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeUp:
    """Logs and questions for secrets may be carried beside the stream from here on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassOn:
    """Have the agent's core hear of this."""

    event: Contact | Disconnected | PlanReceived


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """Give the stream up; the next one is due after a pause."""

    cause: str


StreamAction = SayHello | Beat | TakeUp | PassOn | Leave


class StreamState:
    """How far an agent's present stream has got; only `advance` changes it."""

    def __init__(self, patience: float) -> None:
        """Have no stream yet; `patience` is the seconds in which the coordinator must answer Hello."""
        self.patience = patience
        self.number = 0
        """How many streams were opened."""
        self.opened_at: float | None = None
        """When the present one was; None: there is none."""
        self.terms: Welcomed | None = None
        """What the coordinator said at its beginning; None: it has not answered Hello."""
        self.heard_at = 0.0
        """When the coordinator last said anything."""
        self.beat_at = 0.0
        """When the next heartbeat is due."""
        self.sequence = HELLO
        """Number of the last heartbeat."""
        self.sent_at: dict[int, float] = {}
        """When Hello and each heartbeat were sent that are not acknowledged."""
        self.pause = FIRST_PAUSE
        """Seconds until the next stream is to be opened, about."""

    @property
    def connected(self) -> bool:
        """Whether the coordinator has welcomed the agent on a stream that is still open."""
        return self.opened_at is not None and self.terms is not None

    @property
    def wake_at(self) -> float | None:
        """When time will have something to do; None: there is no stream."""
        if self.opened_at is None:
            return None
        if self.terms is None:
            return self.opened_at + self.patience
        return min(self.beat_at, self.heard_at + self.terms.lease)


def advance(stream: StreamState, event: StreamEvent, at: float) -> list[StreamAction]:
    """Take in what happened on a stream; what is to be done because of it, in order."""
    if isinstance(event, Opened):
        return _open(stream, at)
    if stream.opened_at is None:
        return []
    match event:
        case Broke():
            return _leave(stream, event.cause, at)
        case StreamTimePassed():
            return _pass_time(stream, at)
        case _:
            return _hear(stream, event, at)


def _open(stream: StreamState, at: float) -> list[StreamAction]:
    stream.number += 1
    stream.opened_at, stream.terms, stream.sequence = at, None, HELLO
    stream.sent_at = {HELLO: at}
    return [SayHello()]


def _hear(stream: StreamState, event: Welcomed | Acknowledged | PlanHeard | Heard, at: float) -> list[StreamAction]:
    """Take in a message; whatever it is, the coordinator is there."""
    stream.heard_at = at
    if stream.terms is None:
        if isinstance(event, Welcomed):
            return _take_up(stream, event, at)
        return _leave(stream, "Welcome is not the first answer", at)
    match event:
        case Acknowledged():
            return _acknowledge(stream, event.sequence)
        case PlanHeard():
            return [PassOn(event=PlanReceived(plan=event.plan, stream=stream.number))]
        case Welcomed() | Heard():
            return []
        case _:
            assert_never(event)


def _take_up(stream: StreamState, terms: Welcomed, at: float) -> list[StreamAction]:
    stream.terms, stream.beat_at = terms, at + terms.interval
    return [*_acknowledge(stream, HELLO), TakeUp()]


def _acknowledge(stream: StreamState, sequence: int) -> list[StreamAction]:
    """Count contact from when it was sent; acknowledgements of what is not known say nothing."""
    sent_at = stream.sent_at.get(sequence)
    if sent_at is None:
        return []
    stream.sent_at = {later: at for later, at in stream.sent_at.items() if later > sequence}
    return [PassOn(event=Contact(sent_at=sent_at))]


def _pass_time(stream: StreamState, at: float) -> list[StreamAction]:
    assert stream.opened_at is not None
    if stream.terms is None:
        overdue = at >= stream.opened_at + stream.patience
        return _leave(stream, f"no answer to Hello within {stream.patience:g} s", at) if overdue else []
    if at >= stream.heard_at + stream.terms.lease:
        return _leave(stream, f"silent for {stream.terms.lease:g} s", at)
    if at < stream.beat_at:
        return []
    stream.sequence, stream.beat_at = stream.sequence + 1, at + stream.terms.interval
    stream.sent_at[stream.sequence] = at
    return [Beat(sequence=stream.sequence, stream=stream.number)]


def _leave(stream: StreamState, cause: str, at: float) -> list[StreamAction]:
    """End it. A coordinator that takes streams only to drop them must not be asked ten times a second."""
    assert stream.opened_at is not None
    lasted = at - stream.opened_at > LASTED
    stream.pause = FIRST_PAUSE if lasted else min(stream.pause * PAUSE_GROWTH, LONGEST_PAUSE)
    stream.opened_at, stream.sent_at = None, {}
    return [Leave(cause=cause), PassOn(event=Disconnected())]
