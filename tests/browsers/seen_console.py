"""A fleet with a console, for browsers: it runs in a thread of its own, as the tests of pages wait in theirs."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from muster.client.client import Client
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.view import JobView
from tests.integration.consoles import console
from tests.integration.fleet import SECRET, Fleet, running_fleet

WITHIN = 60.0
"""Seconds for anything that a test asks the fleet for, far more than any needs."""

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenConsole:
    """A console before a fleet of three nodes with eight simulated GPUs each."""

    url: str
    token: str
    """The token of somebody who may do everything."""
    fleet: Fleet
    loop: asyncio.AbstractEventLoop

    def do(self, act: Callable[[Client], Coroutine[Any, Any, Answer]]) -> Answer:
        """What somebody does at the command line meanwhile."""
        return asyncio.run_coroutine_threadsafe(act(self.fleet.client), self.loop).result(WITHIN)

    def submitted(self, spec: JobSpec) -> JobView:
        """A job that was submitted."""
        return self.do(lambda client: client.jobs.submit(spec))

    def running(self, spec: JobSpec) -> JobView:
        """A job, once all of it runs."""
        job = self.submitted(spec)
        return self.do(lambda _: self.fleet.until(job.id, lambda view: view.phase is JobPhase.RUNNING))

    def stopped(self, job: str) -> JobView:
        """A job that was stopped, once it has ended."""

        async def stop(client: Client) -> JobView:
            await client.jobs.stop(job)
            return await client.jobs.wait(job)

        return self.do(stop)


@contextmanager
def seen_console(directory: Path) -> Iterator[SeenConsole]:
    """One that serves until the context ends."""
    ready: asyncio.Event | None = None
    started, found, failures = threading.Event(), list[SeenConsole](), list[BaseException]()

    async def run() -> None:
        nonlocal ready
        ready = asyncio.Event()
        async with _served(directory) as seen:
            found.append(seen)
            started.set()
            await ready.wait()

    def work() -> None:
        try:
            asyncio.run(run())
        except BaseException as error:  # noqa: BLE001 - whatever it is, the test tells it
            failures.append(error)
        finally:
            started.set()

    thread = threading.Thread(target=work, name="fleet")
    thread.start()
    started.wait()
    try:
        if not failures:
            yield found[0]
    finally:
        if found and ready is not None:
            found[0].loop.call_soon_threadsafe(ready.set)
        thread.join()
    if failures:
        raise failures[0]


@asynccontextmanager
async def _served(directory: Path) -> AsyncIterator[SeenConsole]:
    async with (
        running_fleet(directory, "gpu-1", "gpu-2", "gpu-3") as fleet,
        console(fleet.address, token=SECRET, state=directory / "console") as served,
    ):
        yield SeenConsole(url=served.url, token=SECRET, fleet=fleet, loop=asyncio.get_running_loop())
