import os
import socket
from collections.abc import Iterator
from contextlib import closing

import pytest

from agent.executions.ports import PortLedger, ephemeral_range, overlap
from muster.domain.gangs.roster import PortLease
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.jobs.job import PortRequest

ADDRESS = "127.7.7.7"
FIRST = 23500
ONE, TWO, THREE = ExecutionId("one-1-0"), ExecutionId("two-1-0"), ExecutionId("three-1-0")
MASTER = (PortRequest(name="master"),)
EXECUTIONS = (ONE, TWO, THREE)


@pytest.fixture
def ledger() -> Iterator[PortLedger]:
    made = PortLedger(FIRST, FIRST + 3, ADDRESS)
    yield made
    for execution in EXECUTIONS:
        made.free(execution)


def can_bind(number: int, address: str = ADDRESS) -> bool:
    with socket.socket() as user:
        user.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            user.bind((address, number))
        except OSError:
            return False
        return True


def listener(number: int) -> socket.socket:
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((ADDRESS, number))
    made.listen()
    return made


def numbers(leases: tuple[PortLease, ...]) -> list[int]:
    return [lease.host_port for lease in leases]


def test_chosen_ports_come_from_the_range_in_turn(ledger: PortLedger) -> None:
    requests = (PortRequest(name="master"), PortRequest(name="web"))
    assert ledger.hold(ONE, requests) == (
        PortLease(name="master", host_port=FIRST, container_port=FIRST),
        PortLease(name="web", host_port=FIRST + 1, container_port=FIRST + 1),
    )
    assert numbers(ledger.hold(TWO, MASTER)) == [FIRST + 2]


def test_a_given_back_port_is_not_the_next_to_be_leased(ledger: PortLedger) -> None:
    ledger.hold(ONE, MASTER)
    ledger.free(ONE)
    assert numbers(ledger.hold(TWO, MASTER)) == [FIRST + 1]
    ledger.free(TWO)
    assert [numbers(ledger.hold(each, MASTER)) for each in EXECUTIONS] == [[FIRST + 2], [FIRST + 3], [FIRST]]


def test_held_ports_cannot_be_bound_until_they_are_let_go(ledger: PortLedger) -> None:
    ledger.hold(ONE, MASTER)
    assert not can_bind(FIRST)
    ledger.let_go(ONE)
    assert can_bind(FIRST)


def test_nobody_can_connect_to_a_held_port(ledger: PortLedger) -> None:
    ledger.hold(ONE, MASTER)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((ADDRESS, FIRST), timeout=5)


def test_ports_let_go_stay_leased(ledger: PortLedger) -> None:
    ledger.hold(ONE, MASTER)
    ledger.let_go(ONE)
    assert [numbers(ledger.hold(each, MASTER)) for each in (TWO, THREE)] == [[FIRST + 1], [FIRST + 2]]
    with pytest.raises(ExecutionError, match=f"port {FIRST} is taken by execution one-1-0"):
        ledger.hold(ExecutionId("four-1-0"), (PortRequest(name="x", port=FIRST),))


def test_who_has_a_port_is_known_as_long_as_it_is_leased(ledger: PortLedger) -> None:
    ledger.hold(ONE, MASTER)
    ledger.let_go(ONE)
    assert (ledger.owner(FIRST), ledger.owner(FIRST + 1)) == (ONE, None)
    ledger.vacate(ONE)
    assert ledger.owner(FIRST) is None


def test_published_ports_stay_leased_until_they_are_freed(ledger: PortLedger) -> None:
    ledger.hold(ONE, MASTER, bridge=True)
    ledger.adopt(TWO, (PortLease(name="web", host_port=FIRST + 1, container_port=80),), published=True)
    for execution in (ONE, TWO):
        ledger.vacate(execution)
    assert (ledger.owner(FIRST), ledger.owner(FIRST + 1)) == (ONE, TWO)
    for execution in (ONE, TWO):
        ledger.free(execution)
    assert (ledger.owner(FIRST), ledger.owner(FIRST + 1)) == (None, None)


def test_everything_twice_is_the_same_as_once(ledger: PortLedger) -> None:
    leases = ledger.hold(ONE, MASTER)
    assert ledger.hold(ONE, MASTER) == leases
    ledger.let_go(ONE)
    ledger.let_go(ONE)
    ledger.adopt(ONE, leases)
    ledger.adopt(ONE, leases)
    ledger.free(ONE)
    ledger.free(ONE)
    assert can_bind(FIRST)


def test_ports_that_other_programs_have_are_skipped(ledger: PortLedger) -> None:
    with closing(listener(FIRST)):
        assert numbers(ledger.hold(ONE, MASTER)) == [FIRST + 1]


def test_a_requested_number_is_leased_as_it_is(ledger: PortLedger) -> None:
    assert ledger.hold(ONE, (PortRequest(name="master", port=29511),)) == (
        PortLease(name="master", host_port=29511, container_port=29511),
    )
    assert not can_bind(29511)


def test_who_has_a_requested_port_is_named(ledger: PortLedger) -> None:
    with closing(listener(29512)), pytest.raises(ExecutionError) as caught:
        ledger.hold(ONE, (PortRequest(name="master", port=29512),))
    assert caught.value.kind is FailureKind.PORT_TAKEN
    assert str(caught.value).startswith(f"port 29512 is taken by process {os.getpid()} (")


def test_which_execution_has_a_requested_port_is_named(ledger: PortLedger) -> None:
    ledger.hold(ONE, (PortRequest(name="master", port=29513),))
    with pytest.raises(ExecutionError) as caught:
        ledger.hold(TWO, (PortRequest(name="master", port=29513),))
    assert caught.value.kind is FailureKind.PORT_TAKEN
    assert str(caught.value) == "port 29513 is taken by execution one-1-0"


def test_connections_of_an_ended_job_do_not_keep_its_port(ledger: PortLedger) -> None:
    server = listener(29514)
    with closing(socket.create_connection((ADDRESS, 29514), timeout=5)):
        accepted, _ = server.accept()
        accepted.close()  # the side that closes first keeps the port in TIME_WAIT
        server.close()
    with socket.socket() as plain, pytest.raises(OSError, match="in use"):
        plain.bind((ADDRESS, 29514))
    assert numbers(ledger.hold(ONE, (PortRequest(name="master", port=29514),))) == [29514]
    assert not can_bind(29514)


def test_a_refused_request_leaves_nothing_held_or_leased(ledger: PortLedger) -> None:
    with closing(listener(29515)), pytest.raises(ExecutionError):
        ledger.hold(ONE, (PortRequest(name="web", port=29516), PortRequest(name="master", port=29515)))
    assert can_bind(29516)
    assert numbers(ledger.hold(TWO, (PortRequest(name="web", port=29516),))) == [29516]


def test_a_used_up_range_says_who_uses_it(ledger: PortLedger) -> None:
    ledger.hold(ONE, (PortRequest(name="a"), PortRequest(name="b"), PortRequest(name="c")))
    with closing(listener(FIRST + 3)), pytest.raises(ExecutionError) as caught:
        ledger.hold(TWO, MASTER)
    assert caught.value.kind is FailureKind.PORT_TAKEN
    assert str(caught.value) == (
        f"no port from {FIRST} to {FIRST + 3} is free: 3 are leased to executions, 1 are taken by other programs; "
        "give the agent a wider range"
    )


def test_on_bridge_networking_a_number_is_the_containers(ledger: PortLedger) -> None:
    requests = (PortRequest(name="master", port=80), PortRequest(name="web"))
    assert ledger.hold(ONE, requests, bridge=True) == (
        PortLease(name="master", host_port=FIRST, container_port=80),
        PortLease(name="web", host_port=FIRST + 1, container_port=FIRST + 1),
    )


def test_adopted_ports_are_leased_but_not_bound(ledger: PortLedger) -> None:
    ledger.adopt(ONE, (PortLease(name="master", host_port=FIRST, container_port=FIRST),))
    assert can_bind(FIRST)
    assert numbers(ledger.hold(TWO, MASTER)) == [FIRST + 1]
    ledger.free(ONE)
    assert [numbers(ledger.hold(each, (PortRequest(name="x", port=FIRST),))) for each in (THREE,)] == [[FIRST]]


def test_without_an_address_all_of_them_are_held() -> None:
    ledger = PortLedger(FIRST + 10, FIRST + 10)
    ledger.hold(ONE, MASTER)
    assert not can_bind(FIRST + 10, "127.0.0.1")
    assert not can_bind(FIRST + 10, ADDRESS)
    ledger.free(ONE)
    assert can_bind(FIRST + 10, "127.0.0.1")


def test_without_an_address_ipv6_is_held_too() -> None:
    ledger = PortLedger(FIRST + 11, FIRST + 11)
    with socket.socket(socket.AF_INET6) as user:
        try:
            user.bind(("::1", 0))
        except OSError:
            pytest.skip("there is no IPv6 here")
    ledger.hold(ONE, MASTER)
    with socket.socket(socket.AF_INET6) as user, pytest.raises(OSError, match="in use"):
        user.bind(("::1", FIRST + 11))
    ledger.free(ONE)


def test_an_address_that_the_node_does_not_have_is_named() -> None:
    ledger = PortLedger(FIRST, FIRST, "203.0.113.1")
    with pytest.raises(ExecutionError, match=r"203\.0\.113\.1 is not an address of this node") as caught:
        ledger.hold(ONE, MASTER)
    assert caught.value.kind is FailureKind.RUNTIME


@pytest.mark.parametrize(("first", "last"), [(0, 10), (10, 9), (1, 65536)])
def test_a_senseless_range_is_refused(first: int, last: int) -> None:
    with pytest.raises(ValueError, match="is no range of ports"):
        PortLedger(first, last)


@pytest.mark.parametrize(
    ("first", "last", "warns"),
    [(20000, 29999, False), (20000, 32768, True), (40000, 40001, True), (60999, 61500, True), (61000, 61500, False)],
)
def test_a_range_from_which_the_kernel_picks_too_is_warned_about(first: int, last: int, *, warns: bool) -> None:
    assert (overlap(first, last, (32768, 60999)) is not None) == warns


def test_the_ledger_compares_with_the_kernels_own_range() -> None:
    kernel = ephemeral_range()
    assert kernel is not None
    assert str(PortLedger(kernel[0], kernel[0], ADDRESS).warning).startswith(f"ports {kernel[0]}-{kernel[0]} overlap")
