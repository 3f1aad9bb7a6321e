"""What coordinator and depot say to each other about trees that jobs name: all of them, and those of jobs to come."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import count

from coordinator.depot.messages import (
    TREES_IN_LINE,
    DepotDeskMessage,
    DepotHolds,
    DepotKeep,
    DepotKept,
    DepotMessage,
    DepotNames,
    DepotNamesEnd,
    DepotNamesWanted,
    DepotSwept,
)
from muster.domain.errors import UnavailableError

DEPOT_PATIENCE = 20.0
"""Seconds in which the depot says whether it has what a job names."""


class TreeNames:
    """Tells the depot which trees jobs name, and hears what it holds of them."""

    def __init__(self, say: Callable[[Iterable[DepotDeskMessage]], None]) -> None:
        """`say` tells the depot something."""
        self._say = say
        self._calls = count(1)
        self._waiting: dict[int, asyncio.Future[DepotKept]] = {}
        self._held: list[DepotHolds] = []
        """Said since the last look at all objects."""
        self.asked = asyncio.Event()
        """Set while the depot wants to be told all names."""
        self.on_swept: Callable[[tuple[DepotHolds, ...], DepotSwept], None] = _nothing
        """Called when the depot has looked at all objects."""

    def hear(self, message: DepotMessage) -> None:
        """Take in what the depot says."""
        match message:
            case DepotNamesWanted():
                self._held.clear()
                self.asked.set()
            case DepotHolds():
                self._held.append(message)
            case DepotSwept():
                held = tuple(self._held)
                self._held.clear()
                self.on_swept(held, message)
            case DepotKept(call=call):
                waiting = self._waiting.pop(call, None)
                if waiting is not None and not waiting.done():
                    waiting.set_result(message)

    def left(self) -> None:
        """Note that the depot is gone: who waits for it is told so."""
        self.asked.clear()
        self._held.clear()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(UnavailableError("the depot is gone just now; try again"))
        self._waiting.clear()

    def name(self, trees: Mapping[str, Collection[str]]) -> None:
        """Tell the depot all trees that jobs name, by project."""
        self.asked.clear()
        self._say(
            DepotNames(project=project, trees=some)
            for project, mine in trees.items()
            for some in _cut(tuple(mine), TREES_IN_LINE)
        )
        self._say([DepotNamesEnd(count=sum(map(len, trees.values())))])

    async def keep(self, trees: Collection[str]) -> frozenset[str]:
        """Have trees kept that jobs are about to name; those that the depot does not have. Raises UnavailableError."""
        missing: set[str] = set()
        for some in _cut(tuple(trees), TREES_IN_LINE):
            call = next(self._calls)
            waiting = self._waiting[call] = asyncio.get_running_loop().create_future()
            self._say([DepotKeep(call=call, trees=some)])
            try:
                async with asyncio.timeout(DEPOT_PATIENCE):
                    missing |= set((await waiting).missing)
            except TimeoutError:
                raise UnavailableError(
                    f"the depot has not said within {DEPOT_PATIENCE:.0f} s whether it has the code; try again"
                ) from None
            finally:
                self._waiting.pop(call, None)
        return frozenset(missing)


def _cut(trees: tuple[str, ...], most: int) -> Iterable[tuple[str, ...]]:
    return (trees[at : at + most] for at in range(0, len(trees), most))


def _nothing(held: tuple[DepotHolds, ...], swept: DepotSwept) -> None:
    pass
