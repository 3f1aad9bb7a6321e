"""What the coordinator knows of its depot, and what it tells it."""

from datetime import UTC, datetime

import pytest

from coordinator.companions.depot_desk import DepotDesk
from coordinator.depot.messages import (
    TREES_IN_LINE,
    DepotDeskMessage,
    DepotHello,
    DepotHolds,
    DepotIdentity,
    DepotKeep,
    DepotKept,
    DepotMessage,
    DepotNames,
    DepotNamesEnd,
    DepotNamesWanted,
    DepotServes,
    DepotSwept,
    DepotWelcome,
    depot_desk_message,
    depot_line,
    depot_message,
)
from muster.daemon.companions.lines import LONGEST_COMPANION_LINE, CompanionLineError
from muster.trust.depot_ticket import DEPOT_TICKET_LIFE, DepotOperation, read_depot_ticket
from muster.trust.identity import Identity
from muster.trust.tickets import TICKET_SECRET_BYTES, TicketPurpose, ticket_key

SECRET = bytes(TICKET_SECRET_BYTES)
KEY = ticket_key(SECRET, TicketPurpose.DEPOT)
NOW = datetime(2026, 5, 1, tzinfo=UTC)
HELLO = DepotHello(version="0.1.0")
IDENTITY = Identity(certificate=b"-----BEGIN-----\n", key=b"-----KEY-----\n")
TREE = "ab" * 32
HOLDS = DepotHolds(project="vision", trees=1, objects=2, bytes=3)
SWEPT = DepotSwept(objects=5, bytes=6, unnamed_objects=1, unnamed_bytes=2, removed_objects=3, removed_bytes=4)


def desk(listen: str = "0.0.0.0:7460") -> DepotDesk:
    return DepotDesk(SECRET, listen, None)


def test_there_is_an_address_only_while_a_depot_is_there_and_serves() -> None:
    it = desk()
    it.welcome(HELLO)
    assert it.address is None
    it.hear(DepotServes(listen="0.0.0.0:7463"))
    assert it.address == ":7463"
    it.left()
    assert it.address is None


@pytest.mark.parametrize(("served", "told"), [("10.0.0.7:7463", ":7463"), ("10.0.0.9:7463", "10.0.0.9:7463")])
def test_a_depot_at_an_address_of_its_own_is_told_with_that(served: str, told: str) -> None:
    it = desk("10.0.0.7:7460")
    it.welcome(HELLO)
    it.hear(DepotServes(listen=served))
    assert it.address == told


def test_who_does_not_begin_with_a_hello_is_told_nothing_and_counts_as_nobody() -> None:
    it = desk()
    assert it.welcome(DepotServes(listen="0.0.0.0:7463")) == []
    it.hear(DepotServes(listen="0.0.0.0:7463"))
    assert it.address is None


@pytest.mark.parametrize(("clients", "depot"), [("0.0.0.0:7460", "0.0.0.0:7463"), ("127.0.0.1:0", "127.0.0.1:0")])
def test_the_depot_listens_three_ports_after_that_for_clients_or_where_it_was_before(clients: str, depot: str) -> None:
    it = desk(clients)
    assert it.welcome(HELLO) == [DepotWelcome(key=KEY, listen=depot, before="", identity=None)]
    it.hear(DepotServes(listen="127.0.0.1:41000"))
    it.left()
    assert it.welcome(HELLO) == [DepotWelcome(key=KEY, listen=depot, before="127.0.0.1:41000", identity=None)]


def test_another_certificate_is_told_once() -> None:
    stirred: list[bool] = []
    it = DepotDesk(SECRET, "0.0.0.0:7460", lambda: IDENTITY)
    it.stir = lambda: stirred.append(True)
    it.welcome(HELLO)
    it.look_again()
    assert (it.take(), it.take(), stirred) == ([DepotIdentity(identity=IDENTITY)], [], [True])


def test_tickets_open_what_they_are_for_and_nothing_else() -> None:
    put = read_depot_ticket(KEY, desk().put_ticket(project="vision", account="anna", room=7, limit=9, now=NOW), NOW)
    assert (put.operation, put.project, put.account) == (DepotOperation.PUT, "vision", "anna")
    assert (put.room, put.limit) == (7, 9)
    got = read_depot_ticket(KEY, desk().get_ticket(TREE, project="vision", account="gpu-7", now=NOW), NOW)
    assert (got.operation, got.tree, got.room) == (DepotOperation.GET, TREE, 0)
    assert put.ticket != got.ticket
    assert got.not_after == NOW + DEPOT_TICKET_LIFE


@pytest.mark.parametrize(
    "said",
    [
        HELLO,
        DepotServes(listen="0.0.0.0:7463"),
        DepotNamesWanted(),
        HOLDS,
        SWEPT,
        DepotKept(call=7, missing=(TREE,)),
    ],
)
def test_what_the_depot_says_is_read_as_it_was_said(said: DepotMessage) -> None:
    assert depot_message(depot_line(said)) == said


@pytest.mark.parametrize(
    "said",
    [
        DepotWelcome(key=KEY, listen="0.0.0.0:7463", before="", identity=IDENTITY),
        DepotWelcome(key=KEY, listen="127.0.0.1:0", before="127.0.0.1:41000", identity=None),
        DepotIdentity(identity=IDENTITY),
        DepotNames(project="vision", trees=(TREE,)),
        DepotNamesEnd(count=1),
        DepotKeep(call=7, trees=(TREE,)),
    ],
)
def test_what_the_coordinator_says_is_read_as_it_was_said(said: DepotDeskMessage) -> None:
    assert depot_desk_message(depot_line(said)) == said


def test_all_names_are_told_in_lines_that_are_not_too_long() -> None:
    it = desk()
    it.welcome(HELLO)
    it.hear(DepotNamesWanted())
    assert it.names.asked.is_set()
    it.names.name({"vision": [TREE] * (TREES_IN_LINE + 1), "speech": [TREE]})
    assert not it.names.asked.is_set()
    lines = it.take()
    assert [len(each.trees) for each in lines if isinstance(each, DepotNames)] == [TREES_IN_LINE, 1, 1]
    assert lines[-1] == DepotNamesEnd(count=TREES_IN_LINE + 2)
    assert max(len(depot_line(each)) for each in lines) < LONGEST_COMPANION_LINE


def test_very_many_names_are_told_one_part_after_the_other() -> None:
    stirred: list[bool] = []
    it = desk()
    it.welcome(HELLO)
    it.names.name({f"project-{number}": [TREE] for number in range(100)})
    it.stir = lambda: stirred.append(True)
    told = it.take()
    assert len(told) < 100
    while stirred:
        stirred.clear()
        told += it.take()
    assert told[-1] == DepotNamesEnd(count=100)


def test_what_the_depot_holds_is_known_once_it_has_looked_at_everything() -> None:
    told: list[tuple[tuple[DepotHolds, ...], DepotSwept]] = []
    it = desk()
    it.names.on_swept = lambda held, swept: told.append((held, swept))
    it.welcome(HELLO)
    it.hear(HOLDS)
    it.hear(DepotNamesWanted())
    it.hear(HOLDS)
    it.hear(SWEPT)
    assert told == [((HOLDS,), SWEPT)]


def test_what_is_not_known_yet_is_passed_over_and_what_cannot_be_is_refused() -> None:
    assert depot_desk_message(b'{"say":"something new"}') is None
    with pytest.raises(CompanionLineError, match="key has 1 bytes; it must have 32"):
        depot_desk_message(b'{"say":"welcome","key":"00","listen":"","before":""}')
    with pytest.raises(CompanionLineError, match="no JSON"):
        depot_message(b"{")
