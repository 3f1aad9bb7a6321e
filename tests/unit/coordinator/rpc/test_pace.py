"""The pace of callers: who may call how often, by name or by origin."""

import re

import pytest

from coordinator.rpc.pace import Pace, Rates
from coordinator.service.causes import TooFastError
from coordinator.trust.caller import LOCAL, Caller, CallerKind
from coordinator.trust.places import place_of
from muster.daemon.rates import Rate
from muster.domain.ids import NodeId

JOIN = "/muster.rpc.v1.JoinService/Join"
LOGIN = "/muster.rpc.v1.LoginService/Start"
ONE = Rate(burst=1, per_second=0.1)
TWO = Rate(burst=2, per_second=0.1)
SLOW = Rates(strangers=TWO, logins=ONE, wrong=ONE, accounts=ONE, nodes=TWO)
ADA = Caller(kind=CallerKind.USER, name="ada")
NODE = Caller(kind=CallerKind.NODE, name="node/a", node=NodeId("a"))


def pace() -> Pace:
    return Pace(SLOW, lambda: 0.0)


@pytest.mark.parametrize(
    ("peer", "place"),
    [
        ("ipv4:10.1.2.3:54321", "10.1.2.3"),
        ("ipv6:%5B2001:db8:1:2:3:4:5:6%5D:54321", "2001:db8:1:2::/64"),
        ("ipv6:[2001:db8:1:2:ffff::1]:1", "2001:db8:1:2::/64"),
        ("ipv6:%5Bfe80::1%25eth0%5D:54321", "fe80::/64"),
        ("ipv6:%5B::ffff:10.1.2.3%5D:54321", "10.1.2.3"),
        ("ipv6:%5Brubbish%5D:54321", "rubbish"),
        ("unix:", "unix:"),
        ("", ""),
    ],
)
def test_a_place_is_an_address_or_the_network_of_one_customer(peer: str, place: str) -> None:
    assert place_of(peer) == place


def test_strangers_of_one_address_share_their_calls_and_those_of_another_have_their_own() -> None:
    held = pace()
    held.stranger("ipv4:10.0.0.1:1", JOIN)
    held.stranger("ipv4:10.0.0.1:2", JOIN)
    with pytest.raises(TooFastError, match=re.escape("too many calls come from this address; try again in 10 s")) as it:
        held.stranger("ipv4:10.0.0.1:3", JOIN)
    assert it.value.retry_after == 10
    held.stranger("ipv4:10.0.0.2:1", JOIN)


def test_nodes_that_join_on_tokens_that_count_are_not_held_up() -> None:
    held = pace()
    for port in range(10):
        held.stranger(f"ipv4:10.0.0.1:{port}", JOIN)
        held.joined(f"ipv4:10.0.0.1:{port}")
    held.stranger("ipv4:10.0.0.1:1", JOIN)
    held.stranger("ipv4:10.0.0.1:1", JOIN)
    with pytest.raises(TooFastError):
        held.stranger("ipv4:10.0.0.1:1", JOIN)


def test_logins_are_fewer_than_other_calls() -> None:
    held = pace()
    held.stranger("ipv4:10.0.0.1:1", LOGIN)
    with pytest.raises(TooFastError):
        held.stranger("ipv4:10.0.0.1:1", LOGIN)


def test_an_account_is_held_up_wherever_it_calls_from_and_nobody_else_is() -> None:
    held = pace()
    held.known(ADA)
    with pytest.raises(TooFastError, match="ada makes too many calls"):
        held.known(ADA)
    held.known(NODE)
    held.known(NODE)
    with pytest.raises(TooFastError, match="node/a makes too many calls"):
        held.known(NODE)


def test_the_user_of_this_machine_is_never_held_up() -> None:
    held = pace()
    for _ in range(100):
        held.known(LOCAL)


def test_who_shows_too_much_that_does_not_count_is_told_so() -> None:
    held = pace()
    held.wrong("ipv4:10.0.0.1:1")
    with pytest.raises(TooFastError, match="too much that does not count was shown from this address"):
        held.wrong("ipv4:10.0.0.1:2")
