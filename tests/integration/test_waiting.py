"""Jobs that wait, on real programs: held, suspended while they run, and changed, from the SDK down to user code."""

from datetime import timedelta
from pathlib import Path

from muster.domain.event import JobEventKind
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.domain.jobs.queueing.change import JobChange
from muster.domain.jobs.queueing.waiting import WaitKind
from tests.integration.fleet import running_fleet
from tests.integration.jobs import shell

SAVING = """
if [ "$MUSTER_ATTEMPT" = 2 ]; then echo "attempt 2"; exit 0; fi
exec 2>/dev/null
told() { read -r notice < "$MUSTER_CONFIG_DIR/notice.json"
  case $notice in *suspended*) echo suspended;; esac; exit 1; }
trap told TERM
echo "attempt 1"
sleep 60 & wait
"""
"""Starts nothing when it is stopped, as that would be stopped as well, and says nothing of what it had started."""


async def test_a_gang_that_is_suspended_is_told_so_and_begins_anew_when_it_is_resumed(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a", "b") as fleet:
        job = await fleet.client.jobs.submit(shell(SAVING, 2, max_per_node=1))
        await fleet.printed(job.id, 2)

        stopping = await fleet.client.jobs.suspend(job.id)
        waiting = await fleet.until(job.id, lambda view: view.phase is JobPhase.WAITING)
        why = await fleet.client.jobs.why(job.id)
        await fleet.client.jobs.resume(job.id)
        ended = await fleet.client.jobs.wait(job.id)
        first = await fleet.texts(job.id, attempt=1)
        kinds = [event.kind async for event in fleet.client.jobs.events(job.id)]

    assert stopping.phase is JobPhase.STOPPING
    assert [reason.kind for reason in waiting.reasons] == [WaitKind.SUSPENDED]
    assert why.reasons == waiting.reasons
    assert why.summary.endswith(f"; `muster resume {job.id}` lets it go on")
    assert (ended.phase, ended.attempts[-1].number) == (JobPhase.SUCCEEDED, 2)
    assert sorted(first) == ["0 attempt 1", "0 suspended", "1 attempt 1", "1 suspended"]
    assert [kind for kind in kinds if kind in {JobEventKind.WAITING, JobEventKind.QUEUED}] == [
        JobEventKind.WAITING,
        JobEventKind.QUEUED,
    ]


async def test_a_held_job_is_changed_and_runs_once_it_is_released_also_after_a_restart(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        held = await fleet.client.jobs.submit(shell("true", hold=True))
        changed = await fleet.client.jobs.change(held.id, JobChange(priority=7, run=timedelta(hours=1)))
        await fleet.restart_coordinator()
        waiting = await fleet.client.jobs.get(held.id)
        await fleet.client.jobs.unhold(held.id)
        ended = await fleet.client.jobs.wait(held.id)
        told = [event.text async for event in fleet.client.jobs.events(held.id)]

    assert (held.phase, waiting.phase, ended.phase) == (JobPhase.WAITING, JobPhase.WAITING, JobPhase.SUCCEEDED)
    assert (changed.spec.priority, ended.spec.priority) == (7, 7)
    assert waiting.spec.timeouts.run == timedelta(hours=1)
    assert waiting.states == {State.WAITING: 1}
    assert "local changed it: priority 0 → 7, timeouts.run none → 1h" in told
