"""Jobs on machines with networks of their own: how they are run, and how they ended."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

from muster.client.client import Client
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.view import JobView
from tests.e2e.deployment import Deployment

LIMIT = 90.0
"""Seconds that one job may take."""


@asynccontextmanager
async def client_of(machines: Deployment) -> AsyncIterator[Client]:
    """A client for the jobs of one test."""
    async with machines.client as client:
        yield client


async def run(client: Client, spec: JobSpec) -> tuple[JobView, list[str]]:
    """How a job ended, and what user code printed in it; AssertionError with its story where it does not end."""
    submitted = await client.jobs.submit(spec)
    printed: list[str] = []
    try:
        async with asyncio.timeout(LIMIT), aclosing(client.jobs.logs(submitted.id, follow=True)) as log:
            async for line in log:
                if line.text.startswith(b"[muster] "):
                    continue
                printed.append(line.text.decode())
            return await client.jobs.wait(submitted.id), printed
    except TimeoutError:
        story = [f"{event.at:%T} {event.text}" async for event in client.jobs.events(submitted.id)]
        raise AssertionError("\n".join((f"the job has not ended within {LIMIT:.0f} s", *story, *printed))) from None


def exit_code(view: JobView) -> int | None:
    """The exit code that the failure of a job names."""
    return None if view.failure is None or view.failure.exit is None else view.failure.exit.code
