"""`muster forward --open` as a program, with a browser that only tells where it was sent."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from muster.domain.jobs.view import JobView
from muster.trust.files import read_secret
from tests.integration.attaching import AttachingFleet
from tests.integration.programs import ROOT

MUSTER = (sys.executable, "-c", "from muster.cli.main import main; main()")
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
    """`muster forward JOB PORT --open`, with a browser that tells where it was sent; ends by Ctrl-C."""
    env = {
        **os.environ,
        "BROWSER": "echo opened %s",
        "MUSTER_COORDINATOR": fleet.address,
        "MUSTER_HOME": str(fleet.directory / "home"),
        "MUSTER_TOKEN": read_secret(fleet.state / "local-token"),
    }
    words = (*MUSTER, "forward", job.id, f"0:{port}", "--open")
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
