"""Witnesses of workers that begin and end, by the clock of the program that measures: a pipe, and descriptors of
processes.
"""

import asyncio
import os
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

WITHIN = 60.0
"""Seconds for a worker that must begin or end."""
BLOCK = 1 << 16
SCRIPT = 'echo "$MUSTER_JOB_ID $MUSTER_ATTEMPT $MUSTER_RANK $$" >"$HERE"; exec sleep 3600'
"""Says who it is, and ends by SIGTERM at once. One write to the pipe, so that workers do not mix their words."""


@dataclass(frozen=True, slots=True)
class Worker:
    """One process of user code."""

    pid: int
    began: float
    """When its first words came."""


class Workers:
    """Hears of every worker that starts."""

    def __init__(self, pipe: Path) -> None:
        self.pipe = pipe
        """`HERE` in the environment of SCRIPT."""
        os.mkfifo(pipe)
        self._pipe = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
        self._found: dict[tuple[str, int], dict[int, Worker]] = defaultdict(dict)
        self._came = asyncio.Event()
        asyncio.get_running_loop().add_reader(self._pipe, self._hear)

    def close(self) -> None:
        """Listen no more."""
        asyncio.get_running_loop().remove_reader(self._pipe)
        os.close(self._pipe)

    async def of(self, job: str, attempt: int, size: int) -> Sequence[Worker]:
        """All workers of an attempt, once they run."""
        async with asyncio.timeout(WITHIN):
            while len(self._found[job, attempt]) < size:
                self._came.clear()
                await self._came.wait()
        return list(self._found[job, attempt].values())

    def started_again(self, job: str) -> bool:
        """Whether there was a second attempt."""
        return (job, 2) in self._found

    def _hear(self) -> None:
        began = time.perf_counter()
        for line in os.read(self._pipe, BLOCK).decode().splitlines():
            job, attempt, rank, pid = line.split()
            self._found[job, int(attempt)][int(rank)] = Worker(int(pid), began)
        self._came.set()


@contextmanager
def all_ends(pids: Sequence[int]) -> Iterator[Sequence["asyncio.Future[float]"]]:
    """When each of some processes that run now has ended."""
    loop = asyncio.get_running_loop()
    descriptors = {os.pidfd_open(pid): loop.create_future() for pid in pids}

    def ended(descriptor: int) -> None:
        loop.remove_reader(descriptor)
        descriptors[descriptor].set_result(time.perf_counter())

    for descriptor in descriptors:
        loop.add_reader(descriptor, ended, descriptor)
    try:
        yield list(descriptors.values())
    finally:
        for descriptor in descriptors:
            loop.remove_reader(descriptor)
            os.close(descriptor)


async def until_gone(pids: Iterable[int]) -> None:
    """Wait for the end of some processes that may have ended already."""
    for pid in pids:
        with suppress(ProcessLookupError), all_ends([pid]) as (end,):
            await asyncio.wait_for(end, WITHIN)
