"""What disturbs a coordinator in a soak: one kind in a program of its own, of low priority, bounded in time.

    python -m tests.soak.noise KIND ADDRESS SECONDS

MUSTER_TLS_CA is a file with the fleet's authority, MUSTER_TOKEN the token of who is known. It ends well after so many
seconds, whatever the coordinator has said to it: how much of it is refused is of no interest here.
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from muster.client.client import Client
from muster.domain.errors import MusterError
from muster.domain.jobs.job import InlineFile, JobSpec, Resources, Role
from muster.rpc.channel import Credentials
from muster.rpc.v1 import jobs_pb2
from tests.integration.raw_http2 import Connection, connection, framed

AUTHORITY = "/muster.rpc.v1.JoinService/Authority"
JOIN = "/muster.rpc.v1.JoinService/Join"
SUBMIT = "/muster.rpc.v1.JobService/Submit"
WATCH = "/muster.rpc.v1.JobService/Watch"
WATCHED = "watched"
"""The name of the job that is looked at."""
MiB = 2**20

CONNECTIONS = 10
CALLS = 1000
ROUND = 30.0
"""Seconds from one burst of a connection to the next."""
ENDLESS = 10
"""Messages on one connection that do not end."""
MALFORMED_EACH = 0.05
LARGE_EACH = 10.0
LARGE_FOR = 3.0
"""Seconds that a large job is left alone if it was accepted."""
LARGE = (80, 20)
"""Workers of large jobs, in turn."""
AGAIN = 1.0
"""Seconds until a connection that broke is made anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The coordinator that is disturbed."""

    address: str
    authority: bytes
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One connection of many."""

    it: Connection
    number: int
    token: str


async def _begun(line: Line) -> None:
    """Calls that begin and have no message."""
    path = (AUTHORITY, SUBMIT)[line.number % 2]
    while True:
        for _ in range(CALLS):
            await line.it.begin(path)
        await asyncio.sleep(ROUND)


async def _endless(line: Line) -> None:
    """Messages of nearly the largest size that do not end."""
    message = framed(bytes(6 * MiB - 1000), 6 * MiB)
    path = (JOIN, SUBMIT)[line.number % 2]
    calls = [await line.it.begin(path) for _ in range(ENDLESS)]
    for call in calls:
        await line.it.send(call, message)
    await asyncio.sleep(ROUND)


async def _malformed(line: Line) -> None:
    """Messages that are none."""
    for turn in count():
        if line.it.open < CALLS:
            call = await line.it.begin((AUTHORITY, JOIN, SUBMIT)[(line.number + turn) % 3])
            await line.it.send(call, framed(b"\xff" * (1 + turn % 60)))
        await asyncio.sleep(MALFORMED_EACH * CONNECTIONS)


async def _watching(line: Line) -> None:
    """A viewer who watches a job a thousand times on each connection."""
    asked = framed(jobs_pb2.WatchRequest(job=WATCHED).SerializeToString())
    while True:
        for _ in range(CALLS - line.it.open):
            await line.it.send(await line.it.begin(WATCH, line.token), asked)
        await asyncio.sleep(ROUND)


async def _on_connections(target: Target, act: Callable[[Line], Awaitable[None]], connections: int) -> None:
    async def one(number: int) -> None:
        await asyncio.sleep(number * ROUND / connections / 2)
        while True:
            with suppress(OSError, TimeoutError, ExceptionGroup):
                async with connection(target.address, target.authority, f"127.0.0.{2 + number}") as it:
                    await act(Line(it=it, number=number, token=target.token))
            await asyncio.sleep(AGAIN)

    await asyncio.gather(*map(one, range(connections)))


async def _large_jobs(target: Target) -> None:
    """Jobs whose files are a mebibyte, for many workers that may share a node."""
    credentials = Credentials(authority=target.authority, token=target.token)
    async with Client(target.address, credentials) as client:
        for turn in count():
            role = Role(
                count=LARGE[turn % len(LARGE)],
                command=("true",),
                resources=Resources(cpu_millis=100),
                files=(InlineFile(path="data", content=bytes(MiB - 1)),),
            )
            with suppress(MusterError):
                job = await client.jobs.submit(JobSpec(name="large", roles=(role,)), queue_anyway=True)
                await asyncio.sleep(LARGE_FOR)
                await client.jobs.delete(job.id, force=True)
            await asyncio.sleep(LARGE_EACH)


KINDS: Mapping[str, Callable[[Target], Awaitable[None]]] = {
    "begun": lambda target: _on_connections(target, _begun, CONNECTIONS),
    "endless": lambda target: _on_connections(target, _endless, 6),
    "malformed": lambda target: _on_connections(target, _malformed, CONNECTIONS),
    "watching": lambda target: _on_connections(target, _watching, CONNECTIONS),
    "large-jobs": _large_jobs,
}


async def main(kind: str, target: Target, seconds: float) -> None:
    """Disturb for as long as was said."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await KINDS[kind](target)


if __name__ == "__main__":
    os.nice(19)
    wanted, where, how_long = sys.argv[1:]
    shown = Path(os.environ["MUSTER_TLS_CA"]).read_bytes()
    known = os.environ.get("MUSTER_TOKEN", "")
    asyncio.run(main(wanted, Target(address=where, authority=shown, token=known), float(how_long)))
