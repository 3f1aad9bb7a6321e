"""Several things done at the same time, and no more than so many."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

Thing = TypeVar("Thing")


async def each_beside(things: Iterable[Thing], most: int, do: Callable[[Thing], Awaitable[None]]) -> None:
    """Do something with all things, with at most so many at a time; the first error ends all of it and is raised."""
    waiting = iter(things)

    async def some() -> None:
        for each in waiting:
            await do(each)

    workers = [asyncio.create_task(some(), name=f"one of {most} beside each other") for _ in range(most)]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.wait(workers)
