"""Those who come within a moment go on together."""

import asyncio

from coordinator.rpc.rounds import Rounds


async def test_who_comes_meanwhile_goes_on_with_the_others_and_who_comes_later_in_a_round_of_his_own() -> None:
    rounds, went = Rounds(0.0), list[str]()

    async def go(name: str) -> None:
        await rounds.end()
        went.append(name)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(go("a"))
        tasks.create_task(go("b"))
    assert went == ["a", "b"]
    await go("c")
    assert went == ["a", "b", "c"]


async def test_who_gives_up_takes_nobody_with_him() -> None:
    rounds = Rounds(0.0)
    async with asyncio.TaskGroup() as tasks:
        first, second = tasks.create_task(rounds.end()), tasks.create_task(rounds.end())
        tasks.create_task(_cancel(first))
    assert [first.cancelled(), second.cancelled()] == [True, False]


async def _cancel(task: "asyncio.Task[None]") -> None:
    task.cancel()
