"""A fleet with TLS whose people attach to executions of its only node: coordinator, relay and agent."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from muster.client.attachments.attachment import Attachment
from muster.client.client import Client
from muster.domain.attachments.frame import AttachmentOpened
from muster.domain.attachments.request import CommandRequest
from muster.domain.fleet.access import Access
from muster.domain.jobs.job import JobSpec, Resources, Role
from muster.domain.jobs.lifecycle import State
from muster.trust.tokens import parse_api_token
from tests.integration.secured import Secured, joining, secured, until_ready

WITHIN = 60.0
CAT = CommandRequest(words=("cat",), has_input=True)
SLEEPER = JobSpec(
    name="sleeper",
    roles=(Role(name="worker", count=1, command=("sleep", "1000"), resources=Resources(cpu_millis=10)),),
)


@dataclass(frozen=True, kw_only=True)
class Person:
    """Somebody who is attached to an own job in a project of the same name."""

    name: str
    token: str
    client: Client

    async def attach(self, job: str) -> Attachment:
        """`cat` in it, once it runs."""
        attachment = await self.client.attachments.open(job, CAT)
        assert await attachment.receive() == AttachmentOpened()
        return attachment


@asynccontextmanager
async def fleet_with_relay(directory: Path) -> AsyncIterator[Secured]:
    """A coordinator and a relay with TLS, and a node that has joined."""
    async with (
        secured(directory, beside=("relay",)) as fleet,
        joining(fleet, "a", await fleet.join_token()),
        fleet.client() as admin,
    ):
        await until_ready(admin, "a")
        try:
            yield fleet
        finally:
            async for job in admin.jobs.list():
                if not job.phase.ended:
                    await admin.jobs.stop(job.id)
                    await admin.jobs.wait(job.id)


@asynccontextmanager
async def person_of(fleet: Secured, name: str) -> AsyncIterator[Person]:
    """A new person, who is a member of a new project of that name."""
    secret = await fleet.user(name, {name: Access.MEMBER})
    async with fleet.client(secret) as client:
        yield Person(name=name, token=parse_api_token(secret).id, client=client)


async def running(person: Person) -> str:
    """A job of a person, once it runs."""
    job = await person.client.jobs.submit(replace(SLEEPER, project=person.name))
    async with asyncio.timeout(WITHIN):
        async for view in person.client.jobs.watch(job):
            if view.states.get(State.RUNNING):
                break
    return job.id
