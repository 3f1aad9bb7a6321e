"""Connections that the companion opens for the agent."""

import os
import socket
from errno import ECONNREFUSED, ENETUNREACH
from ipaddress import ip_address

import pytest

from agent.core.door.packets import (
    CommandWanted,
    ConnectionBegun,
    ConnectionFailed,
    ConnectionWanted,
    Speaker,
    StayAsked,
)
from tests.contract.door_side import ANSWER_LIMIT, TICKET, DoorLine, DoorSide, everything


@pytest.fixture
def companion(door: DoorSide) -> DoorLine:
    door.run("muster-inside", "stay", str(door.path), env={"MUSTER_TICKET": TICKET})
    line = door.line(Speaker.COMPANION)
    assert line.hear() == StayAsked(ticket=TICKET)
    return line


def opened(companion: DoorLine, address: str, port: int) -> socket.socket:
    """The connection, on its way."""
    companion.say(ConnectionWanted(number=3, address=ip_address(address), port=port))
    packet, descriptors = companion.hear_all()
    assert packet == ConnectionBegun(number=3)
    [descriptor] = descriptors
    connection = socket.socket(fileno=descriptor)
    connection.settimeout(ANSWER_LIMIT)
    return connection


@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_bytes_go_both_ways_and_each_end_may_end_first(companion: DoorLine, family: int, address: str) -> None:
    with socket.create_server((address, 0), family=family) as server:
        server.settimeout(ANSWER_LIMIT)
        with opened(companion, address, server.getsockname()[1]) as mine:
            theirs, _ = server.accept()
            with theirs:
                mine.sendall(b"there")
                mine.shutdown(socket.SHUT_WR)
                assert everything(os.dup(theirs.fileno())) == b"there"
                theirs.sendall(b"and back")
            assert everything(os.dup(mine.fileno())) == b"and back"


def test_the_companion_keeps_nothing_of_a_connection(companion: DoorLine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(ANSWER_LIMIT)
        with opened(companion, "127.0.0.1", server.getsockname()[1]):
            theirs, _ = server.accept()
        with theirs:
            theirs.settimeout(ANSWER_LIMIT)
            assert theirs.recv(1) == b""


def test_where_nothing_listens_the_connection_says_so(companion: DoorLine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    companion.say(ConnectionWanted(number=3, address=ip_address("127.0.0.1"), port=port))
    packet, descriptors = companion.hear_all()
    if isinstance(packet, ConnectionFailed):
        assert packet == ConnectionFailed(number=3, errno=ECONNREFUSED)
    else:
        with socket.socket(fileno=descriptors[0]) as connection:
            assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == ECONNREFUSED


def test_an_address_without_a_way_there_fails_with_the_reason(companion: DoorLine) -> None:
    companion.say(ConnectionWanted(number=4, address=ip_address("240.0.0.1"), port=1))
    packet, descriptors = companion.hear_all()
    for descriptor in descriptors:
        os.close(descriptor)
    assert packet in {ConnectionBegun(number=4), ConnectionFailed(number=4, errno=ENETUNREACH)}


@pytest.mark.parametrize("raw", [b"N\0\0\0\1\5\0\1\1\2\3\4", b"N\0\0\0\1\4\0\1\1\2\3", b"N\0\0\0\1\6\0\1\1\2\3\4\5"])
def test_an_order_that_is_damaged_ends_the_line_and_not_the_companion(
    door: DoorSide, companion: DoorLine, raw: bytes
) -> None:
    companion.say_raw(raw)
    again = door.line(Speaker.COMPANION)
    assert again.hear() == StayAsked(ticket=TICKET)
    output, _ = again.start(CommandWanted(number=1, words=("echo", "up")))
    assert everything(output) == b"up\n"
