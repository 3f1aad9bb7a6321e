"""Looks at what is used every few seconds, and keeps what the span since the last heartbeat comes to."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta

from agent.telemetry.cgroups import CgroupCounts
from agent.telemetry.folding import Look, fold
from agent.telemetry.host import HostCounters
from muster.domain.ids import ExecutionId, GpuUuid
from muster.domain.telemetry.sample import SAMPLED_EVERY, GpuUse, Sample

log = logging.getLogger(__name__)

MOST_LOOKS = 30
"""Looks that are kept while no heartbeat goes out; of older ones nobody hears."""
SLOWEST = timedelta(seconds=8)
"""The longest time between two looks."""
WORTH = 0.005
"""The part of the time between two looks that a look may take; where it takes more, they are made further apart."""


class Sampler:
    """Samples of one node."""

    def __init__(
        self,
        gpus: Callable[[], Awaitable[Mapping[GpuUuid, GpuUse]]],
        executions: Callable[[], Awaitable[Mapping[ExecutionId, CgroupCounts]]],
        host: HostCounters | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._gpus = gpus
        self._executions = executions
        self._host = host or HostCounters()
        self._clock = clock
        self._looks: deque[Look] = deque(maxlen=MOST_LOOKS)
        self._every = SAMPLED_EVERY

    async def run(self) -> None:
        """Look until cancelled."""
        try:
            while True:
                began = self._clock()
                await self.look()
                self._pace(self._clock() - began)
                await asyncio.sleep(self._every.total_seconds())
        finally:
            self._host.close()

    async def look(self) -> None:
        """Look once; what cannot be seen is left out."""
        try:
            host = self._host.read()
        except (OSError, KeyError, ValueError, IndexError) as error:
            log.debug("the node cannot be looked at", extra={"error": str(error)})
            return
        gpus, executions = await self._gpus(), await self._executions()
        self._looks.append(Look(seconds=self._clock(), host=host, gpus=gpus, executions=executions))

    def take(self, now: datetime | None = None) -> Sample | None:
        """The sample since the one before; None: there was no look since."""
        if len(self._looks) < 2:  # noqa: PLR2004 - a rate needs two
            return None
        sample = fold(tuple(self._looks), now or datetime.now(UTC))
        last = self._looks[-1]
        self._looks.clear()
        self._looks.append(last)
        return sample

    def _pace(self, took: float) -> None:
        """Look less often where a look costs too much; a node with thousands of processes is not to feel it."""
        if took > WORTH * self._every.total_seconds() and self._every < SLOWEST:
            self._every *= 2
            log.info("looks at what is used are made further apart", extra={"every_s": self._every.total_seconds()})
