"""The depot's sweeps: when they begin, how fast they go, and what the coordinator is told of them."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime

from coordinator.depot.messages import (
    DepotKeep,
    DepotKept,
    DepotMessage,
    DepotNames,
    DepotNamesEnd,
    DepotNamesWanted,
)
from coordinator.depot.room import ProjectRoom
from coordinator.depot.sweeping import KeptTrees, NamesOfTrees, Sweep, unnamed
from coordinator.depot.taking import ObjectsInHand
from muster.transfer.objects import ObjectFiles

log = logging.getLogger(__name__)

SWEEP_EVERY = 3600.0
"""Seconds between two looks for what no job names any more."""

SWEEP_SOON = 60.0
"""Seconds between two looks where somebody was refused for want of room, as jobs may have been deleted since."""

_RESTS = 4.0
"""How long a look rests after each step, as often as the step took."""


class Sweeper:
    """Looks again and again for what no job names, while the coordinator is there to say what jobs name."""

    def __init__(
        self,
        objects: ObjectFiles,
        hands: ObjectsInHand,
        projects: ProjectRoom,
        kept: KeptTrees,
        clock: Callable[[], datetime],
    ) -> None:
        self._objects = objects
        self._hands = hands
        self._projects = projects
        self._soon = asyncio.Event()
        """Set when somebody was refused who may have made room."""
        projects.on_refused = self._soon.set
        self._clock = clock
        self._names = NamesOfTrees()
        self._told: asyncio.Future[Sweep] | None = None
        """The sweep that begins once all names have been told."""
        self._kept = kept

    async def run(self, tell: Callable[[Sequence[DepotMessage]], None]) -> None:
        """Sweep while a line to the coordinator lasts, until cancelled."""
        while True:
            self._names = NamesOfTrees()
            self._told = asyncio.get_running_loop().create_future()
            tell([DepotNamesWanted()])
            sweep = await self._told
            try:
                await self._through(sweep)
            except OSError as error:
                log.warning("the disk of the depot fails, and nothing more is removed", extra={"cause": str(error)})
            if sweep.outcome is not None:
                log.info(
                    "looked at all objects",
                    extra={
                        "objects": sweep.outcome.objects,
                        "bytes": sweep.outcome.bytes,
                        "removed": sweep.outcome.removed_objects,
                        "removed_bytes": sweep.outcome.removed_bytes,
                    },
                )
                self._projects.looked(sweep.named, lambda digest: self._objects.size(digest) is not None)
                tell([*sweep.holds, sweep.outcome])
            await self._pause()

    def hear(self, message: DepotNames | DepotNamesEnd) -> None:
        """Take in what jobs name."""
        match message:
            case DepotNames():
                self._names.take(message)
            case DepotNamesEnd(count=count):
                names = self._names.all(count)
                if names is None:
                    log.warning("some names of trees got lost; nothing is removed")
                elif self._told is not None and not self._told.done():
                    self._told.set_result(Sweep(objects=self._objects, names=names, now=self._clock))

    async def keep(self, message: DepotKeep) -> DepotKept:
        """Have trees count as used now, as jobs are about to name them."""
        try:
            missing = await asyncio.to_thread(self._kept.keep, message.trees)
        except OSError as error:
            log.warning("the disk of the depot fails", extra={"cause": str(error)})
            missing = tuple(message.trees)
        return DepotKept(call=message.call, missing=missing)

    async def _pause(self) -> None:
        """Wait for the next look: an hour, or a minute where somebody was refused for want of room."""
        await asyncio.sleep(SWEEP_SOON)
        with suppress(TimeoutError):
            async with asyncio.timeout(SWEEP_EVERY - SWEEP_SOON):
                await self._soon.wait()
        self._soon.clear()

    async def _through(self, sweep: Sweep) -> None:
        """Do the steps beside all else, with rests; then forget beginnings that nobody goes on with."""
        steps, loop = sweep.steps(), asyncio.get_running_loop()
        begun = loop.time()
        while await asyncio.to_thread(next, steps, steps) is not steps:
            await asyncio.sleep(_RESTS * (loop.time() - begun))
            begun = loop.time()
        self._forget_parts()

    def _forget_parts(self) -> None:
        now = self._clock()
        begun = {digest: datetime.fromtimestamp(found.st_mtime, now.tzinfo) for digest, found in self._objects.parts()}
        held = {digest for digest in begun if self._hands.is_held(digest)}
        for digest in unnamed(begun.items(), held, now):
            self._objects.remove_part(digest)
