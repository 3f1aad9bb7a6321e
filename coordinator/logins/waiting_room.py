"""What waits for whoever shows its secret: few values, each for a short while, and given once."""

import secrets
from datetime import datetime
from typing import Generic, NamedTuple, TypeVar

from muster.domain.errors import ExhaustedError
from muster.trust.tokens import digest

_SECRET_BYTES = 32

Value = TypeVar("Value")


class _Place(NamedTuple, Generic[Value]):
    """A value that waits."""

    value: Value
    owner: str
    until: datetime


class WaitingRoom(Generic[Value]):
    """Keeps values in memory alone, and of their secrets a digest. Of one owner too many values cost the oldest."""

    def __init__(self, *, most: int, most_of_one: int) -> None:
        self._most = most
        self._most_of_one = most_of_one
        self._places: dict[str, _Place[Value]] = {}

    def enter(self, value: Value, owner: str, until: datetime, now: datetime) -> str:
        """The secret of a value that waits until then; ExhaustedError where too many wait."""
        self._places = {key: place for key, place in self._places.items() if now < place.until}
        own = [key for key, place in self._places.items() if place.owner == owner]
        for key in own[: max(0, len(own) + 1 - self._most_of_one)]:
            del self._places[key]
        if len(self._places) >= self._most:
            raise ExhaustedError("too many people sign in at once; try again in a minute")
        secret = secrets.token_urlsafe(_SECRET_BYTES)
        self._places[digest(secret)] = _Place(value, owner, until)
        return secret

    def leave(self, secret: str, now: datetime) -> Value | None:
        """The value, which waits no more; None where there is none, or its time is over."""
        place = self._places.pop(digest(secret), None)
        return None if place is None or now >= place.until else place.value
