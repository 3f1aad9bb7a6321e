"""How many calls each may hold open at a listener, and what is kept for admins."""

import pytest

from coordinator.rpc.admission.open_calls import Bounds, CallSeat, OpenCalls, Share
from coordinator.service.causes import TooFastError
from coordinator.trust.caller import LOCAL, STRANGER, Caller, CallerKind
from muster.domain.fleet.access import EVERYWHERE, Access

BOUNDS = Bounds(
    known=6,
    admins=2,
    account=Share(calls=3, streams=2),
    node=Share(calls=2, streams=1),
    strangers=Share(calls=3, streams=2),
    stranger=Share(calls=2, streams=1),
)
ADMIN = Caller(kind=CallerKind.USER, name="admin", grants={EVERYWHERE: Access.ADMIN})
NODE = Caller(kind=CallerKind.NODE, name="node/a")


def account(name: str) -> Caller:
    return Caller(kind=CallerKind.USER, name=name, grants={EVERYWHERE: Access.OPERATOR})


def call(who: Caller, place: str = "") -> CallSeat:
    return CallSeat(who, place, stream=False)


def stream(who: Caller, place: str = "") -> CallSeat:
    return CallSeat(who, place, stream=True)


def filled(*seats: CallSeat) -> OpenCalls:
    calls = OpenCalls(BOUNDS)
    for seat in seats:
        calls.enter(seat)
    return calls


def test_an_account_with_as_many_streams_as_it_may_have_can_still_call() -> None:
    ada = account("ada")
    calls = filled(stream(ada), stream(ada))
    with pytest.raises(TooFastError, match="ada has too many streams open; try again in 1 s"):
        calls.enter(stream(ada))
    calls.enter(call(ada))
    with pytest.raises(TooFastError, match="ada has too many calls open"):
        calls.enter(call(ada))
    calls.enter(stream(account("bob")))


def test_what_has_ended_makes_room() -> None:
    ada = account("ada")
    calls = filled(stream(ada), stream(ada))
    calls.leave(stream(ada))
    calls.enter(stream(ada))
    for _ in range(2):
        calls.leave(stream(ada))
    assert len(calls) == 0


def test_when_all_others_have_filled_a_listener_an_admin_gets_in() -> None:
    calls = filled(*(call(account(name)) for name in ("ada", "bob", "cyd", "dan")))
    with pytest.raises(TooFastError, match="the coordinator answers 4 calls at this moment"):
        calls.enter(call(account("eve")))
    with pytest.raises(TooFastError):
        calls.enter(call(NODE))
    calls.enter(call(ADMIN))
    calls.enter(stream(ADMIN))
    with pytest.raises(TooFastError, match="answers 6 calls"):
        calls.enter(call(ADMIN))


def test_who_was_not_let_in_is_not_counted() -> None:
    ada = account("ada")
    calls = filled(stream(ada), stream(ada))
    for _ in range(10):
        with pytest.raises(TooFastError):
            calls.enter(stream(ada))
    assert len(calls) == 2


def test_strangers_of_one_address_and_all_of_them_have_bounds_that_take_nothing_from_those_who_are_known() -> None:
    calls = filled(call(STRANGER, "10.0.0.1"), stream(STRANGER, "10.0.0.1"))
    with pytest.raises(TooFastError, match="too many calls from this address are open"):
        calls.enter(call(STRANGER, "10.0.0.1"))
    calls.enter(call(STRANGER, "10.0.0.2"))
    with pytest.raises(TooFastError, match="too many calls of strangers are open"):
        calls.enter(call(STRANGER, "10.0.0.3"))
    for name in ("ada", "bob", "cyd", "dan"):
        calls.enter(call(account(name)))
    calls.leave(call(STRANGER, "10.0.0.1"))
    calls.enter(call(STRANGER, "10.0.0.3"))


def test_a_node_has_its_own_bound() -> None:
    calls = filled(stream(NODE))
    with pytest.raises(TooFastError, match="node/a has too many streams open"):
        calls.enter(stream(NODE))
    calls.enter(call(NODE))
    with pytest.raises(TooFastError, match="node/a has too many calls open"):
        calls.enter(call(NODE))


def test_the_user_of_this_machine_has_all_of_it() -> None:
    calls = filled(*[stream(LOCAL)] * 6)
    with pytest.raises(TooFastError):
        calls.enter(call(LOCAL))
