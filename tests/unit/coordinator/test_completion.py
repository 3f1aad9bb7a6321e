"""Work that is brought to its end although those who wait for it are cancelled."""

import asyncio

import pytest

from coordinator.completion import completed
from tests.unit.coordinator.engines import all_else_has_had_its_turn


class Caller:
    """Somebody who has some work done, remembers what came of it, and then waits for something else."""

    def __init__(self) -> None:
        self.work: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.known = ""
        self.waited = False
        self.task = asyncio.create_task(self._call())

    async def _call(self) -> str:
        self.known = await completed(self.work)
        await asyncio.sleep(0)
        self.waited = True
        return self.known


async def test_what_came_of_it_is_told() -> None:
    caller = Caller()
    await all_else_has_had_its_turn()
    caller.work.set_result("done")

    assert await caller.task == "done"


async def test_an_error_is_told_too() -> None:
    caller = Caller()
    caller.work.set_exception(ValueError("it went wrong"))

    with pytest.raises(ValueError, match="it went wrong"):
        await caller.task


@pytest.mark.parametrize("times", [1, 3])
async def test_who_is_cancelled_meanwhile_knows_what_came_of_it_and_does_nothing_else(times: int) -> None:
    caller = Caller()
    for _ in range(times):
        await all_else_has_had_its_turn()
        caller.task.cancel()
    await all_else_has_had_its_turn()
    assert not caller.task.done()
    caller.work.set_result("done")

    with pytest.raises(asyncio.CancelledError):
        await caller.task
    assert (caller.known, caller.waited, caller.task.cancelling()) == ("done", False, times)


async def test_a_limit_in_time_still_ends_what_comes_afterwards() -> None:
    work: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def limited() -> str:
        async with asyncio.timeout(0):
            known = await completed(work)
            await asyncio.Event().wait()
        return known

    waiting = asyncio.create_task(limited())
    await all_else_has_had_its_turn()
    assert not waiting.done()
    work.set_result("done")

    with pytest.raises(TimeoutError):
        await waiting
