"""Whoever asks at the door for a command elsewhere in the gang, as the one who carries it out sees it."""

import asyncio

from agent.attach.line import PacketLine
from agent.core.door.packets import (
    LARGEST_DATA,
    DoorError,
    GangBegun,
    GangErrorOutput,
    GangInput,
    GangInputEnd,
    GangOutput,
    GangSignal,
    Speaker,
)

PACKETS_AHEAD = 4
"""Packets of a caller that are read before they are asked for; then the caller waits."""


class GangRefusedError(Exception):
    """A command cannot be run; the sentence is for the caller."""


class DoorCaller:
    """One caller with its line."""

    def __init__(self, line: PacketLine) -> None:
        self._line = line
        self._heard: asyncio.Queue[GangInput | GangInputEnd | GangSignal] = asyncio.Queue(PACKETS_AHEAD)

    async def gone(self) -> None:
        """Wait until it is gone, also while it is not listened to."""
        await self._line.gone()

    async def listen(self) -> None:
        """Take in what it says until it is gone. Raises DoorError."""
        while (packet := await self._line.hear(Speaker.CALLER)) is not None:
            if not isinstance(packet, GangInput | GangInputEnd | GangSignal):
                raise DoorError("a caller asks for one command only")
            await self._heard.put(packet)

    async def heard(self) -> GangInput | GangInputEnd | GangSignal:
        """The next piece of its input, the end of that, or a signal for the command."""
        return await self._heard.get()

    async def begun(self) -> None:
        """Tell it that its command runs."""
        await self._line.say(GangBegun())

    async def output(self, data: bytes) -> None:
        """Pass on output of any size; waits while the caller does not read. Raises ConnectionError."""
        for at in range(0, len(data), LARGEST_DATA):
            await self._line.say(GangOutput(data=data[at : at + LARGEST_DATA]))

    async def error_output(self, data: bytes) -> None:
        """The same for what the command prints as errors."""
        for at in range(0, len(data), LARGEST_DATA):
            await self._line.say(GangErrorOutput(data=data[at : at + LARGEST_DATA]))
