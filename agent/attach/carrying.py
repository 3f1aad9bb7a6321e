"""Bytes between a command and its caller: both directions beside each other, each as fast as it is read."""

import asyncio
from collections.abc import Awaitable, Callable

from agent.attach.gang_site import CommandCaller
from agent.core.door.packets import GangErrorOutput, GangExit, GangInput, GangInputEnd, GangOutput, GangSignal

Read = Callable[[], Awaitable[GangOutput | GangErrorOutput | GangExit]]
"""Gives what a command prints piece by piece, and last of all how it ended."""

Feed = Callable[[GangInput | GangInputEnd | GangSignal], Awaitable[None]]
"""Gives a command what its caller has for it; waits while the command does not read."""


async def carried(read: Read, feed: Feed, caller: CommandCaller) -> int:
    """The exit code of a command, once all that it printed was passed on. Raises ConnectionError for a lost caller."""
    feeding = asyncio.create_task(_feed(feed, caller), name="input of a gang command")
    reading = asyncio.create_task(_read(read, caller), name="output of a gang command")
    try:
        await asyncio.wait((feeding, reading), return_when=asyncio.FIRST_COMPLETED)
        if not reading.done():
            feeding.result()
        return await reading
    finally:
        for each in (feeding, reading):
            each.cancel()
        await asyncio.gather(feeding, reading, return_exceptions=True)


async def _read(read: Read, caller: CommandCaller) -> int:
    while True:
        match await read():
            case GangOutput(data=data):
                await caller.output(data)
            case GangErrorOutput(data=data):
                await caller.error_output(data)
            case GangExit(code=code):
                return code


async def _feed(feed: Feed, caller: CommandCaller) -> None:
    while True:
        await feed(await caller.heard())
