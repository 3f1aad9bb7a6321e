"""The deletion of a job is told to whoever wants it, also if it was deleted while the console was away."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path

from console.events.book import SubscriptionBook
from console.events.outbox import EventOutbox
from console.events.seen.deleted_jobs import DeletedJobs
from console.events.subscription import EventSubscription, SlackTarget
from console.mirror.follower import MirrorFollower
from console.upstream.fleet_id import FleetId
from muster.client.client import Client
from muster.domain.notifications.happening import Happening
from tests.integration.fleet import running_fleet
from tests.integration.jobs import shell

WANTS = EventSubscription(name="chat", target=SlackTarget(url="https://a"), events=("muster.job.deleted",))
NO_PAUSE = 0.01


@asynccontextmanager
async def watching(client: Client, outbox: EventOutbox) -> "AsyncIterator[asyncio.Queue[Happening]]":
    """What a console tells of jobs that are deleted, once it knows those that are there."""
    told: asyncio.Queue[Happening] = asyncio.Queue()
    book, mirror = SubscriptionBook([WANTS]), MirrorFollower(client)
    book.follow(())

    async def asked() -> Client:
        return client

    def hear(happenings: Sequence[Happening]) -> None:
        for each in happenings:
            told.put_nowait(each)

    watch = DeletedJobs(mirror, FleetId(asked), outbox, book, hear, pause=NO_PAUSE)
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(mirror.run()), tasks.create_task(watch.run())]
        yield told
        for task in running:
            task.cancel()


async def test_each_job_that_is_deleted_is_told_once(tmp_path: Path) -> None:
    async with (
        running_fleet(tmp_path) as fleet,
        asyncio.timeout(60),
    ):
        with closing(EventOutbox(tmp_path / "outbox.db")) as outbox:
            jobs = [
                await fleet.client.jobs.submit(shell("true", name=name, hold=True), queue_anyway=True)
                for name in ("first", "second", "third")
            ]
            async with watching(fleet.client, outbox) as told:
                while len(outbox.seen()) < len(jobs):
                    await fleet.client.jobs.get(jobs[0].id)
                await fleet.client.jobs.delete(jobs[0].id, force=True)
                here = await told.get()
            await fleet.client.jobs.delete(jobs[1].id, force=True)
            async with watching(fleet.client, outbox) as told:
                away = await told.get()
            waiting, first = outbox.waiting("chat"), outbox.first_due("chat")
            known = [each.fleet async for each in fleet.client.events.all()]

    assert [each.event.id for each in (here, away)] == [f"job/{job.id}/1/deleted" for job in jobs[:2]]
    assert waiting == 2
    assert first is not None
    event = json.loads(first.body)
    assert (event["type"], event["data"]["job"]["name"]) == ("muster.job.deleted", "first")
    assert event["source"] == f"muster://{known[0]}"
