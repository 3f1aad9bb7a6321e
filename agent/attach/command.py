"""A command that the companion has started, as its agent sees it: pipes, and how it ended."""

import asyncio
import os
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from agent.attach.line import close_all, ready
from agent.core.door.packets import LARGEST_DATA, DoorError, GangErrorOutput, GangExit, GangOutput

LINGERING_OUTPUT = 2.0
"""Seconds for which output is waited for after the end, where something that the command left running has it open."""

LOST_CODE = 255
"""Exit code of a command whose companion is gone."""


class AttachedCommand:
    """A command that runs, or has run."""

    def __init__(
        self, pid: int, descriptors: list[int], *, has_input: bool, terminal: bool, signal: Callable[[int], None]
    ) -> None:
        self.pid = pid
        """The number that the companion knows it by."""
        self.signal = signal
        """Send a signal to the group of the command; harmless after its end."""
        self._all = list(descriptors)
        self._input = descriptors[0] if has_input or terminal else None
        self._terminal = terminal
        outputs = descriptors if terminal else descriptors[-2:]
        kinds: Sequence[type[GangOutput | GangErrorOutput]] = (GangOutput, GangErrorOutput)
        self._outputs = dict(zip(outputs, kinds, strict=False))
        self._exit: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def read(self) -> GangOutput | GangErrorOutput | GangExit:
        """The next piece of output, or last of all how it ended. Nothing is read before it is asked for."""
        while self._outputs:
            for descriptor in tuple(self._outputs):
                piece = self._piece(descriptor)
                if piece is not None:
                    return piece
            if self._outputs and not await self._something():
                break
        return GangExit(code=await asyncio.shield(self._exit))

    async def write(self, data: bytes) -> None:
        """Give it input; waits while it does not read. What reads no more gets nothing."""
        view = memoryview(data)
        while view and self._input is not None:
            try:
                view = view[os.write(self._input, view) :]
            except BlockingIOError:
                await ready(self._input, asyncio.get_running_loop().add_writer)
            except OSError:
                self.end_input()

    def end_input(self) -> None:
        """Let it find the end of its input; a terminal has none."""
        if self._input is not None and not self._terminal:
            self._all.remove(self._input)
            os.close(self._input)
        self._input = None

    def ended(self, code: int) -> None:
        """The companion tells how it ended, or is gone."""
        if not self._exit.done():
            self._exit.set_result(code)

    def close(self) -> None:
        """Let go of it: a command that still runs loses what it reads and writes."""
        self._outputs.clear()
        self._input = None
        close_all(self._all)

    def _piece(self, descriptor: int) -> GangOutput | GangErrorOutput | None:
        try:
            data = os.read(descriptor, LARGEST_DATA)
        except BlockingIOError:
            return None
        except OSError:  # how a terminal ends
            data = b""
        if data:
            return self._outputs[descriptor](data=data)
        del self._outputs[descriptor]
        return None

    async def _something(self) -> bool:
        """Wait for output; False: the command ended some time ago, and there is none."""
        loop = asyncio.get_running_loop()
        outputs = [loop.create_task(ready(each, loop.add_reader), name="output") for each in self._outputs]
        either: set[asyncio.Future[Any]] = {*outputs, self._exit}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not any(each.done() for each in outputs):
                await asyncio.wait(outputs, timeout=LINGERING_OUTPUT, return_when=asyncio.FIRST_COMPLETED)
            return any(each.done() for each in outputs)
        finally:
            for each in outputs:
                each.cancel()
            await asyncio.gather(*outputs, return_exceptions=True)


def checked(descriptors: list[int], *, has_input: bool, terminal: bool) -> None:
    """Refuse descriptors that are no pipes, or no terminal: reading others might take for ever. Raises DoorError."""
    wanted = 1 if terminal else 2 + has_input
    sound = len(descriptors) == wanted and all(
        os.isatty(each) if terminal else stat.S_ISFIFO(os.fstat(each).st_mode) for each in descriptors
    )
    if not sound:
        close_all(descriptors)
        raise DoorError("what came with a command are not its pipes, or not its terminal")
    for each in descriptors:
        with suppress(OSError):
            os.set_blocking(each, False)
