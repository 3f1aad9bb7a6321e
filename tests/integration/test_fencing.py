"""Nodes that are cut off stop what they run; nodes that have all lost the coordinator go on. By fast clocks."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from muster.domain.jobs.disconnect import OnDisconnect
from muster.domain.jobs.failure import FailureKind
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.lifecycle import JobPhase, State
from tests.integration.fleet import Fleet, executions, running_fleet, states_of
from tests.integration.jobs import shell

PACE = 6.0
"""How much faster agents count time than it passes: 60 seconds are ten."""
CUT_OFF = "execution is cut off"


def job(workers: int = 1, lost_after: int = 60, **keys: Any) -> JobSpec:
    """One that runs for as long as it may."""
    spec = shell("exec sleep 1000", workers=workers, max_per_node=1, **keys)
    return replace(spec, timeouts=replace(spec.timeouts, lost_after=timedelta(seconds=lost_after)))


async def start(fleet: Fleet, *names: str) -> None:
    for name in names:
        await fleet.start_agent(name, pace=PACE)
        await fleet.connected(name)


async def test_while_the_coordinator_is_away_a_gang_goes_on_and_a_job_that_shall_stop_does(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet:
        await start(fleet, "a", "b")
        gang = await fleet.client.jobs.submit(job(workers=2))
        stopper = await fleet.client.jobs.submit(job(lost_after=80, on_disconnect=OnDisconnect.STOP))
        for each in (gang, stopper):
            await fleet.until(each.id, lambda view: view.phase is JobPhase.RUNNING)
        await fleet.crash_coordinator()
        await fleet.journal.heard(CUT_OFF, execution=f"{stopper.id}-1-0")  # long after the gang would have been
        await fleet.start_coordinator()
        for name in ("a", "b"):
            await fleet.connected(name, 2)
        [lost] = executions(await fleet.client.jobs.wait(stopper.id))
        assert lost.failure is not None
        assert lost.failure.kind is FailureKind.NODE_LOST
        assert "and the job says on_disconnect: stop" in lost.failure.message
        now = await fleet.client.jobs.get(gang.id)
        assert (len(now.attempts), states_of(now)) == (1, (State.RUNNING, State.RUNNING)), now.summary
        await fleet.client.jobs.stop(gang.id)
        await fleet.client.jobs.wait(gang.id)


async def test_of_a_gang_only_the_part_that_is_cut_off_is_stopped(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet:
        await start(fleet, "a", "b")
        gang = await fleet.client.jobs.submit(job(workers=2))
        await fleet.until_states(gang.id, State.RUNNING, State.RUNNING)
        [mine] = [each for each in executions(await fleet.client.jobs.get(gang.id)) if each.node == "a"]
        fleet.cable("a").cut()
        await fleet.journal.heard(CUT_OFF, execution=mine.id)
        fleet.cable("a").mend()
        ended = await fleet.client.jobs.wait(gang.id)
        [lost, other] = sorted(executions(ended), key=lambda each: each.node or "")
        assert lost.failure is not None
        assert lost.failure.kind is FailureKind.NODE_LOST
        assert lost.failure.message.endswith(" and node b, which has a part in the job, still hears it")
        assert (other.state, other.failure) == (State.STOPPED, None)


async def test_alone_and_kept_it_goes_on_without_the_coordinator(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet:
        await start(fleet, "a")
        kept = await fleet.client.jobs.submit(job())
        stopper = await fleet.client.jobs.submit(job(lost_after=70, on_disconnect=OnDisconnect.STOP))
        for each in (kept, stopper):
            await fleet.until(each.id, lambda view: view.phase is JobPhase.RUNNING)
        fleet.cable("a").cut()
        await fleet.journal.heard(CUT_OFF, execution=f"{stopper.id}-1-0")
        fleet.cable("a").mend()
        await fleet.connected("a", 2)
        now = await fleet.client.jobs.get(kept.id)
        assert (len(now.attempts), states_of(now)) == (1, (State.RUNNING,))
        await fleet.client.jobs.stop(kept.id)
        await fleet.client.jobs.wait(kept.id)
