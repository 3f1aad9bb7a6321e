"""A door that an agent serves, with the real companion behind it, which outlives the agent."""

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from agent.attach.command import AttachedCommand
from agent.attach.companion import Companion
from agent.attach.door import ExecutionDoor
from agent.attach.kept.attachment import KeptAttachment
from agent.core.door.packets import GangErrorOutput, GangExit, GangOutput
from agent.executions.layout import ExecutionDirectory
from agent.runtimes.kernel.subtree import descendants, strike
from muster.domain.ids import ExecutionId
from tests.contract.door_side import TICKET, program

LIMIT = 60.0


class CompanionPlace:
    """An execution in which nothing runs but its companion."""

    def __init__(self, root: Path) -> None:
        self.directory = ExecutionDirectory(root, ExecutionId("x"))
        self.directory.config.mkdir(parents=True)
        self._companion: subprocess.Popen[bytes] | None = None

    @asynccontextmanager
    async def agent(self) -> AsyncIterator[Companion]:
        """An agent that serves the door; its companion is the one that is there already, or is started."""
        door = ExecutionDoor(self.directory, TICKET)
        door.open()
        serving = asyncio.create_task(door.serve())
        try:
            if self._companion is None:
                self._start()
            assert await door.companion.comes(LIMIT)
            yield door.companion
        finally:
            serving.cancel()
            with suppress(asyncio.CancelledError):
                await serving
            door.close()

    @property
    def pid(self) -> int:
        """The process of the companion."""
        assert self._companion is not None
        return self._companion.pid

    def end(self) -> None:
        """End the companion with all that it started."""
        if self._companion is not None:
            companion, self._companion = self._companion, None
            companion.send_signal(signal.SIGSTOP)  # it says nothing of the ends of its commands
            strike(lambda: descendants(companion.pid))
            companion.kill()
            companion.wait()

    def _start(self) -> None:
        path = self.directory.path / "muster-inside"
        shutil.copy(program(), path)
        variables = {"PATH": os.defpath, "MUSTER_TICKET": TICKET}
        self._companion = subprocess.Popen(
            (str(path), "stay", str(self.directory.door)), env=variables, cwd=self.directory.path
        )


@asynccontextmanager
async def a_place(root: Path) -> AsyncIterator[CompanionPlace]:
    """An execution, which ends with the test."""
    place = CompanionPlace(root)
    try:
        async with asyncio.timeout(LIMIT):
            yield place
    finally:
        place.end()


class Reader:
    """Reads from a command or a kept shell, text after text."""

    def __init__(self, command: AttachedCommand | KeptAttachment) -> None:
        self._command = command
        self._left = b""

    async def until(self, text: bytes) -> bytes:
        """What it shows up to the end of a text; what follows is there for the next call."""
        while text not in self._left:
            piece = await self._command.read()
            assert not isinstance(piece, GangExit), self._left
            self._left += piece.data
        passed, _, self._left = self._left.partition(text)
        return passed + text

    async def end(self) -> int:
        """The exit code, once all was read."""
        while isinstance(piece := await self._command.read(), GangOutput | GangErrorOutput):
            self._left += piece.data
        return piece.code
