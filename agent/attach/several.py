"""One command in several executions at once, for one caller; as a step, one program whose parts end together."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence

from agent.attach.caller import GangRefusedError
from agent.attach.gang_site import CommandCaller
from agent.core.door.packets import GangInput, GangInputEnd, GangSignal
from muster.domain.attachments.ranked_lines import RankedLines

MOST_AT_THE_SAME_TIME = 64
"""Executions in which one command runs at once; the others follow as these end."""

HEARD_AHEAD = 4
"""Pieces of input that wait for one of the commands; then all wait for it."""

MOST_HEARD = 64
"""Signals and pieces of input that wait for a part of a step; further signals are dropped."""

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

    return max(await _codes_of(map(in_one, parts), _share_out(caller, parts, has_input=has_input)))


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


async def run_step(
    ranks: Sequence[int], run: "Callable[[int, CommandCaller], Awaitable[int]]", caller: CommandCaller
) -> int:
    """The exit code of the first part that failed, which has the others ended by SIGTERM; otherwise 0.

    Output comes as it is, and input goes to the first part. All parts run at once, as they may wait for each other.
    """
    shared = SharedCaller(caller)
    parts = [PartOfStep(shared, rank) for rank in ranks]
    failed: list[int] = []

    async def in_one(part: PartOfStep) -> int:
        try:
            code = await run(part.rank, part)
        except GangRefusedError as error:
            await part.error_output(f"rank {part.rank}: {error}\n".encode(errors="surrogateescape"))
            code = REFUSED_CODE
        part.close()
        if code and not failed:
            for each in parts:
                each.signal(GangSignal(number=signal.SIGTERM))
        if code:
            failed.append(code)
        return code

    await _codes_of(map(in_one, parts), _share_out_step(caller, parts))
    return failed[0] if failed else 0


async def _codes_of(parts: Iterable[Coroutine[None, None, int]], sharing_out: Coroutine[None, None, None]) -> list[int]:
    """The exit code of each part, once all have ended; what the caller says is shared out until then.

    All end with this call. Raises what sharing out raises, as the caller is gone then.
    """
    running = [asyncio.create_task(part, name=f"part {number} of gang commands") for number, part in enumerate(parts)]
    hearing = asyncio.create_task(sharing_out, name="input of gang commands")
    together = asyncio.gather(*running)
    try:
        await asyncio.wait((hearing, together), return_when=asyncio.FIRST_COMPLETED)
        if not together.done():
            hearing.result()
        return await together
    finally:
        for each in (hearing, *running):
            each.cancel()
        await asyncio.gather(hearing, *running, together, return_exceptions=True)


async def _share_out_step(caller: CommandCaller, parts: "Sequence[PartOfStep]") -> None:
    while True:
        packet = await caller.heard()
        if isinstance(packet, GangSignal):
            for part in parts:
                part.signal(packet)
        else:
            await parts[0].feed(packet)


class PartOfStep:
    """The caller, as the part in one execution sees it."""

    def __init__(self, caller: SharedCaller, rank: int) -> None:
        self.rank = rank
        self._caller = caller
        self._heard: asyncio.Queue[GangInput | GangInputEnd | GangSignal] = asyncio.Queue()
        self._space = asyncio.Semaphore(HEARD_AHEAD)
        self._over = False

    async def begun(self) -> None:
        """Tell it that a part runs."""
        await self._caller.begun()

    async def output(self, data: bytes) -> None:
        """Pass on output."""
        await self._caller.output(data)

    async def error_output(self, data: bytes) -> None:
        """Pass on what was printed as errors."""
        await self._caller.error_output(data)

    async def heard(self) -> GangInput | GangInputEnd | GangSignal:
        """The next piece of its input, the end of that, or a signal for the part."""
        packet = await self._heard.get()
        if not isinstance(packet, GangSignal):
            self._space.release()
        return packet

    async def feed(self, packet: GangInput | GangInputEnd) -> None:
        """Give the part its input; waits while that does not read, and not for one that has ended."""
        if not self._over:
            await self._space.acquire()
            self._heard.put_nowait(packet)

    def signal(self, packet: GangSignal) -> None:
        """Give the part a signal, behind the input that it has not read; no more than it could ever need."""
        if self._heard.qsize() < MOST_HEARD:
            self._heard.put_nowait(packet)

    def close(self) -> None:
        """Let nobody wait for it any more, as the part has ended."""
        self._over = True
        for _ in range(HEARD_AHEAD):
            self._space.release()
