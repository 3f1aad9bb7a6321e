"""Jobs on machines with networks of their own: how they are run, and how they ended."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

from muster.client.client import Client
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.view import JobView
from tests.e2e.deployment import Deployment

LIMIT = 120.0
"""Seconds that one job may take."""


@asynccontextmanager
async def client_of(machines: Deployment) -> AsyncIterator[Client]:
    """A client, for as long as one job may take."""
    async with asyncio.timeout(LIMIT), machines.client as client:
        yield client


async def run(client: Client, spec: JobSpec) -> tuple[JobView, list[str]]:
    """How a job ended, and what user code printed in it."""
    submitted = await client.jobs.submit(spec)
    async with aclosing(client.jobs.logs(submitted.id, follow=True)) as log:
        printed = [line.text.decode() async for line in log if not line.text.startswith(b"[muster] ")]
    return await client.jobs.wait(submitted.id), printed


def exit_code(view: JobView) -> int | None:
    """The exit code that the failure of a job names."""
    return None if view.failure is None or view.failure.exit is None else view.failure.exit.code
