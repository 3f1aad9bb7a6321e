"""A real gang of which one rank prints other numbers than the others: it is told which, and where."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

from console.telemetry.gangs.watcher import GangWatcher
from console.telemetry.sample_follower import follow_samples
from muster.domain.event import JobEvent
from muster.domain.jobs.lifecycle import State
from muster.domain.notifications.happening import Happening
from tests.integration.fleet import running_fleet
from tests.integration.jobs import shell

PRINTS = """
loss=2.0; [ "$MUSTER_RANK" = 2 ] && loss=9.5
for step in 1 2 3 4 5 6; do echo "{\\"step\\": $step, \\"loss\\": $loss}"; done
exec sleep 60
"""
TOLD_WITHIN = 60.0


def in_six_minutes() -> datetime:
    """A time at which a gang that is released now is watched."""
    return datetime.now(UTC) + timedelta(minutes=6)


async def test_the_rank_that_prints_other_numbers_is_told_once(tmp_path: Path) -> None:
    seen: list[Happening] = []
    async with running_fleet(tmp_path, "a") as fleet, asyncio.timeout(TOLD_WITHIN):
        job = await fleet.client.jobs.submit(shell(PRINTS, workers=3))
        await fleet.until_states(job.id, *[State.RUNNING] * 3)
        watcher = GangWatcher(fleet.client, seen.append, now=in_six_minutes)
        watching = asyncio.create_task(watcher.run())
        following = asyncio.create_task(follow_samples(fleet.client, [watcher.hear]))
        while not seen:
            await fleet.client.jobs.get(job.id)
            await watcher.look_now()
        await watcher.look_now()
        differences = list(watcher.differences(job.id))
        for task in (watching, following):
            task.cancel()
        await asyncio.wait([watching, following])
        await fleet.client.jobs.stop(job.id)
        stored = [each async for each in fleet.client.events.all()]

    assert [(each.rank, each.what, each.node, each.until) for each in differences] == [(2, "loss", "a", None)]
    [told] = seen
    assert isinstance(told.event, JobEvent)
    assert told.event.text == "rank 2 on a differs: its loss left the band of the other 2 at step 2"
    assert told.event.id.startswith(f"job/{job.id}/1/rank_differs/2/")
    assert told.fleet == stored[0].fleet
    assert told.job is not None
    assert (told.job.id, told.job.project) == (job.id, "default")
