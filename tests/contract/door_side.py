"""The agent's side of a door, as far as a test needs it: one packet after the other, nothing beside it."""

import os
import platform
import select
import shutil
import socket
import subprocess
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.resources import files
from pathlib import Path

from agent.core.door.coding import decoded, encoded
from agent.core.door.packets import LARGEST_PACKET, CommandStarted, CommandWanted, Packet, Speaker
from agent.runtimes.kernel.subtree import descendants, strike

ANSWER_LIMIT = 20.0
"""Seconds in which a program of ours does what it is asked."""

TICKET = "7" * 32


def program(architecture: str = "") -> Path:
    """The program that is sent along, for an architecture or this one."""
    name = f"muster-inside-{architecture or platform.machine()}"
    return Path(str(files("agent.runtimes") / "inside_program" / name))


class DoorSide:
    """A door in a directory, with the programs beside it that come to it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.path = directory / "door"
        self._listener: socket.socket | None = None
        self.programs: list[subprocess.Popen[bytes]] = []
        self._lines: list[DoorLine] = []
        self.open()

    def open(self) -> None:
        """Listen, as an agent that starts does."""
        self.path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.settimeout(ANSWER_LIMIT)
        directory = os.open(self.directory, os.O_PATH)
        try:
            self._listener.bind(f"/proc/self/fd/{directory}/door")  # the path itself may be too long
        finally:
            os.close(directory)
        self._listener.listen()

    def shut(self) -> None:
        """Listen no more."""
        if self._listener is not None:
            self._listener.close()

    def run(
        self, name: str, *words: str, env: Mapping[str, str] | None = None, stdin: int = subprocess.DEVNULL
    ) -> subprocess.Popen[bytes]:
        """Start the program under one of its names."""
        path = self.directory / name
        if not path.exists():
            shutil.copy(program(), path)
        variables = {"PATH": os.defpath, "MUSTER_DOOR": str(self.path), **(env or {})}
        started = subprocess.Popen(
            (str(path), *words), env=variables, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.programs.append(started)
        return started

    def line(self, speaker: Speaker) -> "DoorLine":
        """The next line that a program opens."""
        assert self._listener is not None
        connection, _ = self._listener.accept()
        line = DoorLine(connection, speaker)
        self._lines.append(line)
        return line

    def close(self) -> None:
        """End everything."""
        self.shut()
        for line in self._lines:
            line.close()
        for each in self.programs:
            strike(partial(descendants, each.pid))  # a companion's end does not end its commands
            each.kill()
            each.communicate()


class DoorLine:
    """A line to one program."""

    def __init__(self, connection: socket.socket, speaker: Speaker) -> None:
        self._connection = connection
        self._connection.settimeout(ANSWER_LIMIT)
        self._speaker = speaker

    def hear(self) -> Packet:
        """The next packet."""
        return self.hear_all()[0]

    def hear_all(self) -> tuple[Packet, list[int]]:
        """The next packet, and the descriptors that came with it."""
        raw, descriptors, _, _ = socket.recv_fds(self._connection, LARGEST_PACKET, 4)
        return decoded(raw, self._speaker), list(descriptors)

    def wait(self) -> None:
        """Wait until there is something to hear."""
        assert select.select([self._connection], [], [], ANSWER_LIMIT)[0]

    def say(self, packet: Packet) -> None:
        """Send a packet."""
        self._connection.send(encoded(packet))

    def say_raw(self, raw: bytes) -> None:
        """Send what may be no packet."""
        self._connection.send(raw)

    def start(self, wanted: CommandWanted) -> Sequence[int]:
        """Have a command started; the descriptors that it is reached by."""
        self.say(wanted)
        packet, descriptors = self.hear_all()
        assert isinstance(packet, CommandStarted), packet
        assert packet.number == wanted.number
        return descriptors

    def close(self) -> None:
        """Hang up."""
        self._connection.close()


def everything(descriptor: int) -> bytes:
    """All that can be read until the other end is closed; a terminal ends with an error."""
    pieces = []
    try:
        while piece := os.read(descriptor, 1 << 16):
            pieces.append(piece)
    except OSError:
        pass
    os.close(descriptor)
    return b"".join(pieces)
