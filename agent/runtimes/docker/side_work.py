"""What a thread does for a task that goes on meanwhile."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def begun(work: Callable[[], T]) -> asyncio.Future[T]:
    """The result to come of work that blocks and has begun.

    A task that fails or is cancelled before it asks for that need not wait for it: no thread can be interrupted.
    """
    working = asyncio.get_running_loop().run_in_executor(None, work)
    working.add_done_callback(_hear)
    return working


def _hear(working: asyncio.Future[T]) -> None:
    """Nobody else may want to know why it failed."""
    if not working.cancelled():
        working.exception()
