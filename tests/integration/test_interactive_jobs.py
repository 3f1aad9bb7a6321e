"""Interactive jobs as plain processes: they wait, run their setup first, and are stopped when nobody uses them."""

from datetime import timedelta
from pathlib import Path

import pytest

from agent.gpus.simulated import SimulatedSource
from muster.domain.ids import NodeId
from muster.domain.jobs.failure import Exit, FailureKind
from muster.domain.jobs.interactive import Interactive
from muster.domain.jobs.job import JobSpec, Resources, Role, Timeouts
from muster.domain.jobs.lifecycle import JobPhase, State
from tests.integration.fleet import Fleet, python, running_fleet
from tests.integration.jobs import CHECK_IN, GRACE

SHORT = timedelta(seconds=10)
SOMETIMES_BUSY = """
import time
begun = time.monotonic()
while time.monotonic() < begun + 14:
    until = time.process_time() + 0.02
    while time.process_time() < until:
        pass
    time.sleep(0.06)
print("rests", flush=True)
time.sleep(600)
"""
"""A program that uses a quarter of a CPU for longer than it could go unused, and then nothing."""


def dev(setup: str = "", *words: str, idle: timedelta = timedelta(hours=2), workers: int = 1, gpus: int = 0) -> JobSpec:
    """An interactive job; without words it waits."""
    return JobSpec(
        name="dev",
        roles=(Role(count=workers, command=words, resources=Resources(cpu_millis=100, gpus=gpus)),),
        timeouts=Timeouts(check_in=CHECK_IN, grace=GRACE, idle=idle),
        interactive=Interactive(setup=setup),
    )


async def kinds(fleet: Fleet, job: str) -> list[str]:
    """What its events tell of its end."""
    told = [event async for event in fleet.client.jobs.events(job)]
    return [str(event.kind) for event in told if event.kind in {"idle", "stopping", "stopped", "failed", "succeeded"}]


async def test_a_job_without_a_command_waits_until_it_is_stopped(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.client.jobs.submit(dev(workers=2))
        await fleet.until_states(job.id, State.RUNNING, State.RUNNING)
        await fleet.client.jobs.stop(job.id)
        ended = await fleet.client.jobs.wait(job.id)

        assert (ended.phase, ended.failure) == (JobPhase.STOPPED, None)
        told_to_end = {Exit(code=0), Exit(code=143)}  # it may be told before it listens
        assert {each.exit for each in ended.attempts[0].executions} <= told_to_end
        assert await fleet.texts(job.id) == []


async def test_its_setup_runs_in_each_execution_before_the_command_and_prints_into_the_log(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        script = 'echo "$MUSTER_RANK: main, $1 $#"; exit $MUSTER_RANK'
        ended = await fleet.run(dev("echo setup; exec true", "/bin/sh", "-c", script, "sh", "a b", workers=1))

        assert (ended.phase, await fleet.texts(ended.id)) == (JobPhase.SUCCEEDED, ["0 setup", "0 0: main, a b 1"])


async def test_what_a_setup_leaves_in_the_background_goes_on_and_ends_with_the_job(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.client.jobs.submit(
            dev("(trap 'echo told; exit' TERM; echo up; while :; do sleep 0.1; done) &")
        )
        await fleet.printed(job.id, 1)
        await fleet.until_states(job.id, State.RUNNING)
        await fleet.client.jobs.stop(job.id)
        await fleet.client.jobs.wait(job.id)

        assert {"0 up", "0 told"} <= set(await fleet.texts(job.id))  # and perhaps what its shell says of that


@pytest.mark.parametrize("words", [(), ("echo", "main")])
async def test_a_setup_that_fails_ends_the_job_with_a_failure_of_its_own_kind(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        ended = await fleet.run(dev("echo no such module >&2; exit 3", *words))

        failure = ended.failure
        assert failure is not None
        assert (failure.kind, failure.rank, failure.exit) == (FailureKind.SETUP, 0, Exit(code=3))
        assert failure.message == "its setup (interactive.setup) ended with exit code 3"
        told = ("no such module", "muster: interactive.setup ended with exit code 3")
        assert failure.log_tail == told
        assert (ended.phase, len(ended.attempts)) == (JobPhase.FAILED, 1)


async def test_a_command_that_fails_after_its_setup_is_not_taken_for_a_setup_that_failed(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        ended = await fleet.run(dev("true", "sh", "-c", "exit 4"))

        assert ended.failure is not None
        assert (ended.failure.kind, ended.failure.exit) == (FailureKind.EXIT_CODE, Exit(code=4))


async def test_a_job_that_nobody_uses_is_stopped_and_has_not_failed(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        ended = await fleet.run(dev(idle=SHORT))

        assert (ended.phase, ended.summary, ended.failure) == (JobPhase.STOPPED, "stopped: idle for 10s", None)
        assert await kinds(fleet, ended.id) == ["idle", "stopping", "stopped"]


async def test_a_program_that_computes_is_used_until_it_rests(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.client.jobs.submit(dev("", *python(SOMETIMES_BUSY), idle=SHORT))
        await fleet.printed(job.id, 1)
        assert await kinds(fleet, job.id) == []
        ended = await fleet.client.jobs.wait(job.id)

        assert (ended.phase, ended.summary) == (JobPhase.STOPPED, "stopped: idle for 10s")


async def test_a_gpu_at_work_is_use_and_the_cpu_is_then_not_looked_at(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet:
        source = SimulatedSource("1xH100", NodeId("a"))
        await fleet.start_agent("a", gpus=source)
        await fleet.connected("a")
        [gpu] = (await source.read()).gpus
        source.make_busy(gpu.uuid, 90)
        job = await fleet.client.jobs.submit(dev("", "sh", "-c", "sleep 14; echo late; sleep 600", idle=SHORT, gpus=1))
        await fleet.printed(job.id, 1)
        assert await kinds(fleet, job.id) == []

        source.make_busy(gpu.uuid, 2)
        ended = await fleet.client.jobs.wait(job.id)
        assert ended.summary == "stopped: idle for 10s"


async def test_a_coordinator_that_is_started_anew_does_not_stop_it_early_and_stops_it_all_the_same(
    tmp_path: Path,
) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.client.jobs.submit(dev(idle=SHORT))
        await fleet.until_states(job.id, State.RUNNING)
        await fleet.restart_coordinator()
        await fleet.connected("a", 2)
        assert (await fleet.client.jobs.get(job.id)).phase is JobPhase.RUNNING
        ended = await fleet.client.jobs.wait(job.id)

        assert ended.summary == "stopped: idle for 10s"
