"""What is told to systemd, heard at a socket as systemd has it."""

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.daemon.systemd import Systemd


@pytest.fixture
def line(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(5)
        yield listening


def test_the_service_manager_hears_what_happens(line: socket.socket) -> None:
    systemd = Systemd({"NOTIFY_SOCKET": line.getsockname()})
    systemd.ready("runs a1")
    systemd.status("has not joined yet")
    systemd.stopping()
    assert [line.recv(100) for _ in range(3)] == [
        b"READY=1\nSTATUS=runs a1",
        b"STATUS=has not joined yet",
        b"STOPPING=1",
    ]


async def test_a_program_that_is_watched_says_that_it_is_alive(line: socket.socket) -> None:
    systemd = Systemd({"NOTIFY_SOCKET": line.getsockname(), "WATCHDOG_USEC": "30000", "WATCHDOG_PID": str(os.getpid())})
    alive = asyncio.ensure_future(systemd.keep_alive())
    heard = [await asyncio.to_thread(line.recv, 100) for _ in range(3)]
    alive.cancel()
    assert heard == [b"WATCHDOG=1"] * 3


async def test_who_is_not_watched_says_nothing(line: socket.socket) -> None:
    await Systemd({"NOTIFY_SOCKET": line.getsockname()}).keep_alive()
    another = {"NOTIFY_SOCKET": line.getsockname(), "WATCHDOG_USEC": "1", "WATCHDOG_PID": "1"}
    await Systemd(another).keep_alive()
    line.setblocking(False)
    with pytest.raises(BlockingIOError):
        line.recv(100)


def test_what_it_starts_does_not_speak_in_its_name() -> None:
    environ = {"NOTIFY_SOCKET": "/run/notify", "WATCHDOG_USEC": "1", "WATCHDOG_PID": "7", "PATH": "/bin"}
    Systemd(environ)
    assert environ == {"PATH": "/bin"}


def test_a_manager_that_is_not_there_or_has_gone_does_no_harm(tmp_path: Path) -> None:
    Systemd({}).ready("runs")
    Systemd({"NOTIFY_SOCKET": str(tmp_path / "gone")}).ready("runs")
    Systemd({"NOTIFY_SOCKET": "@muster-test-gone"}).stopping()
