"""What the coordinator knows of its relay, and what it tells it."""

from datetime import UTC, datetime

import pytest

from coordinator.companions import relay_desk as relaying
from coordinator.companions.relay_desk import RelayDesk, Traffic
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
    desk_message,
    line_of,
    relay_message,
)
from muster.daemon.companions.lines import CompanionLineError
from muster.domain.ids import NodeId
from muster.trust.identity import Identity
from muster.trust.tickets import TICKET_LIFE, TICKET_SECRET_BYTES, TicketPurpose, TicketSide, read_ticket, ticket_key

SECRET = bytes(TICKET_SECRET_BYTES)
NOW = datetime(2026, 5, 1, tzinfo=UTC)
HELLO = RelayHello(version="0.1.0", run="first")
IDENTITY = Identity(certificate=b"-----BEGIN-----\n", key=b"-----KEY-----\n")


def desk(listen: str = "0.0.0.0:7460") -> RelayDesk:
    return RelayDesk(SECRET, "fleet", listen, None)


def carried(attachment: str = "a", bytes_in: int = 0, *, client: bool = True, agent: bool = True) -> AttachmentCarried:
    return AttachmentCarried(
        attachment=attachment,
        account="anna",
        node=NodeId("gpu-7"),
        client=client,
        agent=agent,
        bytes_in=bytes_in,
        bytes_out=2 * bytes_in,
    )


def welcome(greeted: list[DeskMessage]) -> RelayWelcome:
    first = greeted[0]
    assert isinstance(first, RelayWelcome)
    return first


def test_there_is_an_address_only_while_a_relay_is_there_and_serves() -> None:
    it = desk()
    it.welcome(HELLO)
    assert it.address is None
    it.hear(RelayServes(listen="0.0.0.0:7462"))
    assert it.address == ":7462"
    it.left()
    assert it.address is None


@pytest.mark.parametrize(
    ("clients", "relay", "told"),
    [
        ("0.0.0.0:7460", "0.0.0.0:7462", ":7462"),
        ("0.0.0.0:7460", "[::]:9000", ":9000"),
        ("127.0.0.1:7460", "127.0.0.1:41000", ":41000"),
        ("0.0.0.0:7460", "10.0.0.5:7462", "10.0.0.5:7462"),
    ],
)
def test_a_host_is_told_only_where_it_is_not_that_of_the_coordinator(clients: str, relay: str, told: str) -> None:
    it = desk(clients)
    it.welcome(HELLO)
    it.hear(RelayServes(listen=relay))
    assert it.address == told


@pytest.mark.parametrize(("clients", "relay"), [("0.0.0.0:7460", "0.0.0.0:7462"), ("127.0.0.1:0", "127.0.0.1:0")])
def test_the_relay_listens_two_ports_after_clients(clients: str, relay: str) -> None:
    assert welcome(desk(clients).welcome(HELLO)).listen == relay


def test_a_relay_that_comes_again_hears_where_it_was() -> None:
    it = desk("127.0.0.1:0")
    assert welcome(it.welcome(HELLO)).before == ""
    it.hear(RelayServes(listen="127.0.0.1:41000"))
    it.left()
    assert welcome(it.welcome(RelayHello(version="0.1.0", run="second"))).before == "127.0.0.1:41000"


def test_a_relay_hears_all_that_is_open_and_what_was_closed_meanwhile() -> None:
    it = desk()
    it.opened("a")
    it.opened("b")
    it.close("b", "revoked")
    assert it.welcome(HELLO)[1:] == [
        AttachmentClosed(attachment="b", why="revoked"),
        AttachmentOpen(attachment="a"),
        RelayListed(),
    ]
    assert it.take() == []


def test_only_the_last_word_about_an_attachment_is_told_and_told_once() -> None:
    it = desk()
    it.welcome(HELLO)
    it.opened("a")
    it.opened("b")
    it.close("a", "revoked")
    assert it.take() == [AttachmentOpen(attachment="b"), AttachmentClosed(attachment="a", why="revoked")]
    assert it.take() == []


def test_a_ticket_is_of_this_coordinators_secret_and_for_a_minute() -> None:
    text = desk().ticket("a", TicketSide.AGENT, account="anna", node=NodeId("gpu-7"), now=NOW)
    read = read_ticket(ticket_key(SECRET, TicketPurpose.ATTACHMENT), text)
    assert (read.attachment, read.side, read.account, read.node) == ("a", TicketSide.AGENT, "anna", "gpu-7")
    assert read.not_after == NOW + TICKET_LIFE


def test_the_traffic_of_relays_that_follow_each_other_is_added_up() -> None:
    it = desk()
    assert it.traffic("a") == Traffic()
    it.welcome(HELLO)
    it.hear(carried(bytes_in=10))
    it.left()
    it.welcome(HELLO)  # the same relay, which has gone on counting
    it.hear(carried(bytes_in=15))
    assert it.traffic("a") == Traffic(bytes_in=15, bytes_out=30, client=True, agent=True)
    it.welcome(RelayHello(version="0.1.0", run="second"))
    assert it.traffic("a") == Traffic(bytes_in=15, bytes_out=30)
    it.hear(carried(bytes_in=5, agent=False))
    assert it.traffic("a") == Traffic(bytes_in=20, bytes_out=40, client=True, agent=False)


def test_after_a_restart_of_the_coordinator_what_the_relay_carries_counts_as_open() -> None:
    it = desk()
    it.welcome(HELLO)
    it.hear(carried())
    assert it.take() == [AttachmentOpen(attachment="a")]
    assert it.carried["a"].account == "anna"
    assert AttachmentOpen(attachment="a") in it.welcome(RelayHello(version="0.1.0", run="second"))


def test_what_was_closed_is_never_taken_for_open_again() -> None:
    it = desk()
    it.close("a", "revoked")
    it.welcome(HELLO)
    it.hear(carried())
    assert it.take() == []
    assert it.traffic("a") == Traffic()


def test_what_was_taken_over_is_closed_once_the_relay_forgets_it_and_what_is_known_here_is_not() -> None:
    it = desk()
    it.opened("known")
    it.welcome(HELLO)
    it.hear(carried("known", 10))
    it.hear(carried("taken over"))
    it.take()
    it.hear(AttachmentForgotten(attachment="known"))
    it.hear(AttachmentForgotten(attachment="taken over"))
    assert it.take() == [AttachmentClosed(attachment="taken over", why="both sides were away for too long", lost=True)]
    assert it.traffic("known").bytes_in == 10


@pytest.mark.parametrize("first", ["relay", "node"])
def test_what_neither_an_earlier_coordinator_nor_an_earlier_agent_lives_to_end_is_lost(first: str) -> None:
    it = desk()
    it.welcome(HELLO)
    it.opened("served")
    for comes in (first, {"relay": "node", "node": "relay"}[first]):
        if comes == "node":
            it.came(NodeId("gpu-7"))
        else:
            it.hear(carried("forgotten"))
            it.hear(carried("served"))
    told = {each for each in it.take() if isinstance(each, AttachmentClosed)}
    assert told == {AttachmentClosed(attachment="forgotten", why="the agent of gpu-7 was restarted", lost=True)}


def test_what_a_node_serves_that_has_not_come_yet_may_go_on() -> None:
    it = desk()
    it.welcome(HELLO)
    it.hear(carried("a"))
    it.came(NodeId("gpu-8"))
    it.opened("a")  # as its own node says when it comes
    it.came(NodeId("gpu-7"))
    assert it.take() == [AttachmentOpen(attachment="a")]


def test_only_so_many_closed_attachments_are_remembered() -> None:
    it = desk()
    for number in range(relaying.CLOSED_KEPT + 1):
        it.close(f"a{number}", "closed")
    greeted = it.welcome(HELLO)
    assert len(greeted) == relaying.CLOSED_KEPT + 2
    assert greeted[1] == AttachmentClosed(attachment="a1", why="closed")


def test_another_certificate_is_told_when_it_is_there() -> None:
    shown = [IDENTITY]
    it = RelayDesk(SECRET, "fleet", "0.0.0.0:7460", lambda: shown[0])
    assert welcome(it.welcome(HELLO)).identity == IDENTITY
    stirred: list[bool] = []
    it.stir = lambda: stirred.append(True)
    shown[0] = Identity(certificate=b"new", key=b"new")
    it.look_again()
    assert it.take() == [RelayIdentity(identity=shown[0])]
    assert stirred == [True]


@pytest.mark.parametrize(
    "message", [HELLO, RelayServes(listen="0.0.0.0:7462"), carried(bytes_in=7), AttachmentForgotten(attachment="a")]
)
def test_what_the_relay_says_comes_as_it_was_said(message: RelayMessage) -> None:
    assert relay_message(line_of(message)) == message


@pytest.mark.parametrize(
    "message",
    [
        RelayWelcome(fleet="f", key=SECRET, listen="0.0.0.0:7462", before="", identity=IDENTITY),
        RelayWelcome(fleet="f", key=SECRET, listen="127.0.0.1:0", before="127.0.0.1:4", identity=None),
        RelayIdentity(identity=IDENTITY),
        AttachmentOpen(attachment="a"),
        AttachmentClosed(attachment="a", why="revoked"),
        AttachmentClosed(attachment="a", why="the agent was restarted", lost=True),
        RelayListed(),
    ],
)
def test_what_the_coordinator_says_comes_as_it_was_said(message: DeskMessage) -> None:
    assert desk_message(line_of(message)) == message


def test_what_another_version_says_is_passed_over() -> None:
    assert relay_message(b'{"say":"sings","tune":1}\n') is None
    assert desk_message(b'{"say":"open","attachment":"a","more":1}\n') == AttachmentOpen(attachment="a")
    closed = AttachmentClosed(attachment="a", why="revoked")
    assert desk_message(b'{"say":"closed","attachment":"a","why":"revoked"}\n') == closed


@pytest.mark.parametrize(
    "line", [b"", b"\xff", b"[]", b"{}", b'{"say":7}', b'{"say":"hello"}', b'{"say":"carried","attachment":"a"}']
)
def test_a_line_that_cannot_be_is_refused(line: bytes) -> None:
    with pytest.raises(CompanionLineError):
        relay_message(line)


def test_the_key_and_the_private_key_are_in_no_text_of_the_message() -> None:
    said = RelayWelcome(fleet="f", key=b"\x01" * 32, listen="", before="", identity=IDENTITY)
    assert "\\x01" not in repr(said)
    assert "KEY" not in repr(said)
