"""An event loop whose clock leaps to whatever is awaited next: ten minutes pass in no time."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class LeapingLoop(asyncio.SelectorEventLoop):
    """A loop that nothing outside wakes."""

    def __init__(self) -> None:
        self.seconds = 0.0
        """What its clock shows."""
        super().__init__(_LeapingSelector(self))

    def time(self) -> float:
        """Seconds since the loop was made."""
        return self.seconds


class _LeapingSelector(selectors.SelectSelector):
    """Waits for nothing: the clock moves on instead."""

    def __init__(self, loop: LeapingLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "everybody waits, and nothing will ever happen"
        found = super().select(0)
        if not found:
            self._loop.seconds += max(timeout, 0.0)
        return found


def run_leaping(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine to its end on such a loop."""
    with asyncio.Runner(loop_factory=LeapingLoop) as runner:
        return runner.run(coroutine)
