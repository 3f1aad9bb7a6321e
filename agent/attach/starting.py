"""What a companion was asked to start and has not told of yet: what becomes of the descriptors that come."""

import asyncio
import os
import socket
import stat
from collections.abc import Callable
from dataclasses import dataclass

from agent.attach.command import AttachedCommand, checked
from agent.attach.connection import AttachedConnection
from agent.core.door.packets import CommandWanted, DoorError, FilesWanted


@dataclass(frozen=True, slots=True)
class StartingCommand:
    """A command that is being started."""

    order: CommandWanted
    largest: int
    answer: "asyncio.Future[AttachedCommand]"

    def begun(self, pid: int, descriptors: list[int], signal: Callable[[int], None]) -> AttachedCommand:
        """The command that runs, which whoever waits for it gets; the descriptors are its own now. Raises DoorError."""
        wanted = self.order
        checked(descriptors, has_input=wanted.has_input, terminal=wanted.terminal)
        command = AttachedCommand(
            pid,
            descriptors,
            has_input=wanted.has_input,
            terminal=wanted.terminal,
            signal=signal,
            largest=self.largest,
        )
        descriptors.clear()
        self.answer.set_result(command)
        return command


@dataclass(frozen=True, slots=True)
class StartingFiles:
    """A server for files that is being started."""

    order: FilesWanted
    answer: "asyncio.Future[AttachedConnection]"

    def begun(self, _: int, descriptors: list[int], __: Callable[[int], None]) -> AttachedConnection:
        """The line to it, which whoever waits for it gets. Raises DoorError."""
        connection = AttachedConnection(taken_socket(descriptors))
        self.answer.set_result(connection)
        return connection


Starting = StartingCommand | StartingFiles


def taken_socket(descriptors: list[int]) -> socket.socket:
    """The one socket that came with a packet. Raises DoorError."""
    if len(descriptors) != 1 or not stat.S_ISSOCK(os.fstat(descriptors[0]).st_mode):
        raise DoorError("what came with a connection is not its socket")
    return socket.socket(fileno=descriptors.pop())
