"""What a thread does for a task that goes on meanwhile."""

import asyncio
import gc
import threading

from agent.runtimes.docker.side_work import begun


async def test_a_task_goes_on_while_the_work_is_done() -> None:
    gone_on = threading.Event()
    working = begun(gone_on.wait)
    gone_on.set()
    assert await working


async def test_a_failure_that_nobody_waits_for_bothers_nobody() -> None:
    def fail() -> None:
        raise OSError("disk full")

    unheard: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unheard.append(context))
    working = begun(fail)
    await asyncio.wait([working])
    del working
    gc.collect()
    assert unheard == []
