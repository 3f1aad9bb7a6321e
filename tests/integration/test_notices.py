"""Executions that are stopped find out why, save, and tell of it: with real agents and processes."""

from datetime import timedelta
from pathlib import Path

from muster.domain.jobs.failure import FailureKind
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.domain.jobs.stopping.preemption import OnPreempt, PreemptSignal
from tests.integration.fleet import python, running_fleet, states_of
from tests.integration.jobs import command

SAVES = """
import os, signal, sys, time
sys.path.append(os.environ["MUSTER_CONFIG_DIR"])
import muster_worker
got = []
for name in ("SIGTERM", "SIGUSR1"):
    signal.signal(getattr(signal, name), lambda *_, name=name: got.append(name))
print("ready", flush=True)
while not (muster_worker.noticed() and got):
    time.sleep(0.02)
muster_worker.checkpointed()
notice = muster_worker.noticed()
print(got, notice.reason, round(notice.seconds_left / 5) * 5, flush=True)
"""
PREEMPT = timedelta(seconds=40)


async def test_a_job_that_is_stopped_reads_so_and_what_it_saves_is_shown(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.client.jobs.submit(command(*python(SAVES), preempt=PREEMPT))
        await fleet.printed(job.id, 1)
        await fleet.until_states(job.id, State.RUNNING)
        await fleet.client.jobs.stop(job.id)
        ended = await fleet.client.jobs.wait(job.id)
        assert [line.text for line in await fleet.output(job.id, follow=True)] == [b"ready", b"['SIGTERM'] stopped 5"]
        [attempt] = ended.attempts
        assert ended.phase is JobPhase.STOPPED
        assert attempt.saved_at is not None
        assert attempt.started_at is not None
        assert attempt.started_at <= attempt.saved_at


async def test_a_job_whose_node_is_drained_gets_its_own_signal_and_its_own_time(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a", "b") as fleet:
        wanted = command(*python(SAVES), preempt=PREEMPT, on_preempt=OnPreempt(signal=PreemptSignal.USR1))
        job = await fleet.client.jobs.submit(wanted)
        await fleet.printed(job.id, 1)
        [first] = (await fleet.client.jobs.get(job.id)).attempts[0].executions
        assert first.node is not None
        await fleet.client.nodes.cordon(first.node, restart_jobs=True)
        found = await fleet.until(job.id, lambda view: len(view.attempts) == 2 and states_of(view) == (State.RUNNING,))
        assert [line.text for line in await fleet.output(job.id, attempt=1)][1:] == [b"['SIGUSR1'] drained 40"]
        failure = found.attempts[0].failure
        assert failure is not None
        assert failure.kind is FailureKind.DRAINED
        assert found.attempts[0].saved_at is not None
