"""Open calls, counted by caller, and the bounds that they keep; pure decisions."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from coordinator.service.causes import TooFastError
from coordinator.trust.caller import Caller, CallerKind
from muster.domain.fleet.access import Access

Key = TypeVar("Key", bound=Hashable)

SOON = 1.0
"""Seconds after which whoever found too many calls open may try again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Most open calls of one caller."""

    calls: int
    """Calls of every kind."""
    streams: int
    """Streams among them; what is left is for short calls, such as one that ends a stream's token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Most open calls of one listener."""

    known: int
    """Calls of everybody whom the listener knows."""
    admins: int
    """Calls among them that only admins can open."""
    account: Share
    node: Share
    strangers: Share
    """Calls of all strangers together."""
    stranger: Share
    """Calls of strangers from one address."""


@dataclass(frozen=True, slots=True)
class CallSeat:
    """One open call, as it is counted."""

    who: Caller
    place: str
    """Address of the caller; counts for strangers only."""
    stream: bool


class OpenCalls:
    """The calls that one listener answers at this moment."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._known = 0
        self._accounts = _Tally[str]()
        self._nodes = _Tally[str]()
        self._places = _Tally[str]()
        self._strangers = _Tally[None]()

    def __len__(self) -> int:
        return self._known + self._strangers.calls(None)

    def enter(self, seat: CallSeat) -> None:
        """Count a call that begins; raises TooFastError where a bound is reached, and counts nothing then."""
        who, bounds = seat.who, self._bounds
        if who.kind is CallerKind.STRANGER:
            if self._places.full(seat.place, bounds.stranger, seat.stream):
                raise TooFastError(f"too many {_kind(seat)} from this address are open", SOON)
            if self._strangers.full(None, bounds.strangers, seat.stream):
                raise TooFastError(f"too many {_kind(seat)} of strangers are open", SOON)
            self._places.add(seat.place, seat.stream)
            self._strangers.add(None, seat.stream)
            return
        if who.kind is not CallerKind.LOCAL:  # the user of `muster up` has the machine alone
            tally, share = self._share(who)
            if tally.full(who.name, share, seat.stream):
                raise TooFastError(f"{who.name} has too many {_kind(seat)} open", SOON)
        if self._known >= bounds.known - bounds.admins and not self._room_for(who):
            raise TooFastError(f"the coordinator answers {self._known} calls at this moment", SOON)
        if who.kind is not CallerKind.LOCAL:
            tally.add(who.name, seat.stream)
        self._known += 1

    def leave(self, seat: CallSeat) -> None:
        """Count a call no more that was let in and has ended."""
        who = seat.who
        if who.kind is CallerKind.STRANGER:
            self._places.remove(seat.place, seat.stream)
            self._strangers.remove(None, seat.stream)
            return
        if who.kind is not CallerKind.LOCAL:
            self._share(who)[0].remove(who.name, seat.stream)
        self._known -= 1

    def _share(self, who: Caller) -> "tuple[_Tally[str], Share]":
        if who.kind is CallerKind.NODE:
            return self._nodes, self._bounds.node
        return self._accounts, self._bounds.account

    def _room_for(self, who: Caller) -> bool:
        return who.may(Access.ADMIN) and self._known < self._bounds.known


class _Tally(Generic[Key]):
    """Open calls by key; a key without any is forgotten."""

    def __init__(self) -> None:
        self._calls: dict[Key, int] = {}
        self._streams: dict[Key, int] = {}

    def calls(self, key: Key) -> int:
        return self._calls.get(key, 0)

    def full(self, key: Key, share: Share, stream: bool) -> bool:
        return self._calls.get(key, 0) >= share.calls or (stream and self._streams.get(key, 0) >= share.streams)

    def add(self, key: Key, stream: bool) -> None:
        self._calls[key] = self._calls.get(key, 0) + 1
        if stream:
            self._streams[key] = self._streams.get(key, 0) + 1

    def remove(self, key: Key, stream: bool) -> None:
        _take_one(self._calls, key)
        if stream:
            _take_one(self._streams, key)


def _take_one(counts: dict[Key, int], key: Key) -> None:
    if counts[key] == 1:
        del counts[key]
    else:
        counts[key] -= 1


def _kind(seat: CallSeat) -> str:
    return "streams" if seat.stream else "calls"
