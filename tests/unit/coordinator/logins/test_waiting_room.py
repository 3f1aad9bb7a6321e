"""A waiting room: what waits is given once, for a while, and to whoever shows its secret."""

from datetime import UTC, datetime, timedelta

import pytest

from coordinator.logins.waiting_room import WaitingRoom
from muster.domain.errors import ExhaustedError

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
UNTIL = NOW + timedelta(seconds=60)


def test_a_value_is_given_once() -> None:
    room = WaitingRoom[str](most=10, most_of_one=2)
    secret = room.enter("a value", "ada", UNTIL, NOW)
    assert room.leave("another secret", NOW) is None
    assert room.leave(secret, NOW) == "a value"
    assert room.leave(secret, NOW) is None


def test_a_value_whose_time_is_over_is_gone() -> None:
    room = WaitingRoom[str](most=10, most_of_one=2)
    secret = room.enter("a value", "ada", UNTIL, NOW)
    assert room.leave(secret, UNTIL) is None


def test_one_owner_loses_the_oldest_and_others_lose_nothing() -> None:
    room = WaitingRoom[str](most=10, most_of_one=2)
    grace = room.enter("of grace", "grace", UNTIL, NOW)
    first, second, third = (room.enter(name, "ada", UNTIL, NOW) for name in ("first", "second", "third"))
    assert [room.leave(each, NOW) for each in (first, second, third, grace)] == [None, "second", "third", "of grace"]


def test_a_full_room_takes_nobody_until_somebody_leaves_or_a_time_is_over() -> None:
    room = WaitingRoom[str](most=2, most_of_one=2)
    first = room.enter("first", "ada", UNTIL, NOW)
    room.enter("second", "grace", UNTIL, NOW)
    with pytest.raises(ExhaustedError, match="too many people sign in at once"):
        room.enter("third", "hopper", UNTIL, NOW)
    room.leave(first, NOW)
    room.enter("third", "hopper", UNTIL, NOW)
    room.enter("later", "ada", UNTIL + timedelta(seconds=60), UNTIL)
