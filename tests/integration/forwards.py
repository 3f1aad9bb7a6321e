"""`muster forward --open` as a program, with a browser that only tells where it was sent."""

import asyncio
import signal
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from muster.domain.jobs.view import JobView
from tests.integration.attaching import AttachingFleet
from tests.integration.attaching_program import variables
from tests.integration.programs import ROOT
from tests.integration.terminal import PROGRAM

WITHIN = 90.0
"""Seconds until the server answers; the first start of Jupyter Lab compiles a lot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forwarding:
    """What `muster forward --open` has said and done."""

    address: str
    """Where it listens."""
    opened: str
    """What it opened in the browser."""


@asynccontextmanager
async def forwarding(fleet: AttachingFleet, job: JobView, port: str) -> AsyncIterator[Forwarding]:
    """`muster forward JOB PORT --open`, with a browser that tells where it was sent; ends by Ctrl-C.

    `port` is as the command takes it: a number, a name, or one of these behind a local port.
    """
    env = {**variables(fleet), "BROWSER": "echo opened %s"}
    words = (*PROGRAM, "forward", job.id, port, "--open")
    process = await asyncio.create_subprocess_exec(*words, stdout=PIPE, env=env, cwd=ROOT)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(WITHIN):
            said, opened = [(await process.stdout.readline()).decode().split() for _ in range(2)]
        assert opened[0] == "opened"
        yield Forwarding(address=said[0], opened=opened[1])
    finally:
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 130
