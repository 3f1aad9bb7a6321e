"""What can wait a little waits for containers that are being started."""

import asyncio
from contextlib import ExitStack, suppress

from agent.runtimes.docker.engine.starts import Starts


async def waiter(starts: Starts) -> asyncio.Task[None]:
    """Somebody who has begun to wait."""
    waiting = asyncio.create_task(starts.over(60), name="waits for starts")
    await asyncio.sleep(0)
    return waiting


async def test_nobody_waits_where_nothing_is_being_started() -> None:
    starts = Starts()
    await starts.over(0)
    with starts.one():
        pass
    await starts.over(0)


async def test_others_wait_for_the_last_of_the_starts() -> None:
    starts = Starts()
    with starts.one(), ExitStack() as first:
        first.enter_context(starts.one())
        waiting = await waiter(starts)
        first.close()
        await asyncio.sleep(0)
        assert not waiting.done()
    await waiting


async def test_a_start_that_fails_is_over() -> None:
    starts = Starts()
    with suppress(ValueError), starts.one():
        waiting = await waiter(starts)
        raise ValueError
    await waiting


async def test_nobody_waits_for_ever() -> None:
    starts = Starts()
    with starts.one():
        await starts.over(0)
