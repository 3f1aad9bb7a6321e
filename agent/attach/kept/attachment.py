"""A kept shell, or the main program, as whoever is attached to it sees it."""

import asyncio
from collections import deque
from collections.abc import Callable

from agent.attach.command import AttachedCommand
from agent.core.door.packets import GangExit, GangOutput

PIECES_AHEAD = 4
"""Pieces that are read before whoever is attached asks for them; then the shell waits."""


class TakenOverError(Exception):
    """Somebody else has attached to the same shell, or the same main program."""


class KeptAttachment:
    """What goes on for whoever is attached to it, with the verbs of a command."""

    def __init__(
        self,
        command: AttachedCommand,
        replay: bytes,
        detached: "Callable[[KeptAttachment], None]",
        patience: float | None = None,
    ) -> None:
        """`patience`: seconds for which what is shown waits for who is attached; None: for as long as it takes."""
        self.pid = command.pid
        """The number that the companion knows it by."""
        self._command = command
        self._detached = detached
        self._pieces = deque((GangOutput(data=replay),) if replay else ())
        self._end: GangExit | None = None
        self._patience = patience
        self._behind = False
        """Whether whoever is attached did not read for too long, and has missed something."""
        self._gone = False
        """Whether it was closed, or somebody else has taken over."""
        self._come = asyncio.Event()
        self._taken = asyncio.Event()

    @property
    def is_lost(self) -> bool:
        """Whether nobody knows how it ends, as its companion is gone."""
        return self._command.is_lost

    async def read(self) -> GangOutput | GangExit:
        """What was shown last, then what is shown now, last of all how it ended. Raises TakenOverError."""
        while not self._gone:
            if self._pieces:
                self._taken.set()
                return self._pieces.popleft()
            if self._end is not None:
                return self._end
            self._come.clear()
            await self._come.wait()
        raise TakenOverError

    async def write(self, data: bytes) -> None:
        """Give it input; waits while it does not read."""
        if not self._gone:
            await self._command.write(data)

    def end_input(self) -> None:
        """Let it find the end of its input; a terminal has none."""
        if not self._gone and not self._command.has_terminal:
            self._command.end_input()

    def signal(self, number: int) -> None:
        """Send a signal to the group of the shell."""
        if not self._gone:
            self._command.signal(number)

    def resize(self, rows: int, columns: int) -> None:
        """Give its terminal another size."""
        if not self._gone:
            self._command.resize(rows, columns)

    def close(self) -> None:
        """Detach; the shell goes on."""
        self.leave()
        self._detached(self)

    def leave(self) -> None:
        """Be attached no more, as somebody else is."""
        self._gone = True
        self._pieces.clear()
        self._come.set()
        self._taken.set()

    async def give(self, piece: GangOutput) -> None:
        """Pass on what is shown; waits while nobody reads, and as long as it is attached.

        Whoever does not read for longer than `patience` misses what is shown until it reads again.
        """
        if self._behind and len(self._pieces) >= PIECES_AHEAD:
            return
        while len(self._pieces) >= PIECES_AHEAD and not self._gone:
            self._taken.clear()
            try:
                async with asyncio.timeout(self._patience):
                    await self._taken.wait()
            except TimeoutError:
                self._behind = True
                return
        self._behind = False
        if not self._gone:
            self._pieces.append(piece)
            self._come.set()

    def ended(self, end: GangExit) -> None:
        """Tell how it ended."""
        self._end = end
        self._come.set()
