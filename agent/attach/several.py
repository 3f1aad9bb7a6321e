"""One command in several executions at once, for one caller."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from agent.attach.caller import GangRefusedError
from agent.attach.gang_site import CommandCaller
from agent.core.door.packets import GangInput, GangInputEnd, GangSignal
from agent.core.door.ranked_lines import RankedLines

MOST_AT_THE_SAME_TIME = 64
"""Executions in which one command runs at once; the others follow as these end."""

HEARD_AHEAD = 4
"""Pieces of input that wait for one of the commands; then all wait for it."""

REFUSED_CODE = 255


async def run_in_several(
    ranks: Sequence[int],
    run: "Callable[[int, CommandCaller], Awaitable[int]]",
    caller: CommandCaller,
    *,
    has_input: bool,
) -> int:
    """The highest exit code; each line of output has its rank before it. Raises GangRefusedError."""
    if has_input and len(ranks) > MOST_AT_THE_SAME_TIME:
        raise GangRefusedError(
            f"input goes to at most {MOST_AT_THE_SAME_TIME} executions at once, not to {len(ranks)}; use -n for none"
        )
    shared = SharedCaller(caller)
    parts = [PartOfCaller(shared, rank) for rank in ranks]
    turns = asyncio.Semaphore(MOST_AT_THE_SAME_TIME)

    async def in_one(part: PartOfCaller) -> int:
        async with turns:
            try:
                code = await run(part.rank, part)
            except GangRefusedError as error:
                await part.error_output(f"{error}\n".encode(errors="surrogateescape"))
                code = REFUSED_CODE
            finally:
                part.close()
            await part.end()
            return code

    hearing = asyncio.create_task(_share_out(caller, parts, has_input=has_input), name="input of gang commands")
    running = [asyncio.create_task(in_one(part), name=f"gang command in rank {part.rank}") for part in parts]
    together = asyncio.gather(*running)
    try:
        await asyncio.wait((hearing, together), return_when=asyncio.FIRST_COMPLETED)
        if not together.done():
            hearing.result()
        return max(await together)
    finally:
        for each in (hearing, *running):
            each.cancel()
        await asyncio.gather(hearing, *running, together, return_exceptions=True)


async def _share_out(caller: CommandCaller, parts: "Sequence[PartOfCaller]", *, has_input: bool) -> None:
    while True:
        packet = await caller.heard()
        if has_input or isinstance(packet, GangSignal):
            for part in parts:
                await part.tell(packet)


class SharedCaller:
    """The caller, which hears once that its command runs, and whole lines of one rank at a time."""

    def __init__(self, caller: CommandCaller) -> None:
        self._caller = caller
        self._begun = False
        self._speaking = asyncio.Lock()

    async def begun(self) -> None:
        """Tell it that the first of its commands runs."""
        if not self._begun:
            self._begun = True
            await self._caller.begun()

    async def output(self, lines: bytes) -> None:
        """Pass on lines."""
        async with self._speaking:
            await self._caller.output(lines)

    async def error_output(self, lines: bytes) -> None:
        """Pass on lines that were printed as errors."""
        async with self._speaking:
            await self._caller.error_output(lines)


class PartOfCaller:
    """The caller, as the command of one rank sees it."""

    def __init__(self, shared: SharedCaller, rank: int) -> None:
        self.rank = rank
        self._shared = shared
        self._output = RankedLines(rank)
        self._error_output = RankedLines(rank)
        self._heard: asyncio.Queue[GangInput | GangInputEnd | GangSignal] = asyncio.Queue(HEARD_AHEAD)
        self._over = False

    async def begun(self) -> None:
        """Tell it that a command runs."""
        await self._shared.begun()

    async def output(self, data: bytes) -> None:
        """Pass on whole lines of output."""
        await self._shared.output(self._output.feed(data))

    async def error_output(self, data: bytes) -> None:
        """Pass on whole lines that were printed as errors."""
        await self._shared.error_output(self._error_output.feed(data))

    async def heard(self) -> GangInput | GangInputEnd | GangSignal:
        """The next piece of its input, the end of that, or a signal for the command."""
        return await self._heard.get()

    async def tell(self, packet: GangInput | GangInputEnd | GangSignal) -> None:
        """Give its command what the caller says; waits while that does not read, and not for one that has ended."""
        if not self._over:
            await self._heard.put(packet)

    def close(self) -> None:
        """Let nobody wait for it any more, as its command has ended."""
        self._over = True
        while not self._heard.empty():
            self._heard.get_nowait()

    async def end(self) -> None:
        """Pass on what is left of its output."""
        await self._shared.output(self._output.end())
        await self._shared.error_output(self._error_output.end())
