"""A fixed port goes from one execution to the next as soon as nothing of the first runs, cleared away or not."""

import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import psutil

from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.jobs.job import JobSpec, PortRequest, Resources
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.domain.jobs.restart import RestartPolicy
from muster.domain.jobs.view import JobView
from tests.integration.fleet import CPUS, Fleet, executions, python, running_fleet, states_of
from tests.integration.jobs import command, shell
from tests.integration.obstacles import RuntimeWithObstacles

PORT = 30_155
LISTEN = f"""
import os, socket
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind((os.environ["MUSTER_ADDRESS"], {PORT}))
server.listen()
"""
LEAVE_A_LISTENER = f"""
import os
ready, says = os.pipe()
if os.fork():
    os.read(ready, 1)
    os._exit(0)
{LISTEN}
print(os.getpid(), flush=True)
for output in (1, 2):
    os.close(output)
os.write(says, b"x")
while True:
    server.accept()
"""
"""Ends at once; its child listens at the port for ever."""
KILLED = "[muster] killed 1 process that the program had left running"


@asynccontextmanager
async def node(directory: Path) -> AsyncIterator[tuple[Fleet, RuntimeWithObstacles]]:
    """A fleet of one node, which clears nothing away."""
    async with running_fleet(directory) as fleet:
        runtime = RuntimeWithObstacles()
        runtime.gates["remove"].close()
        await fleet.start_agent("a", runtime=runtime)
        await fleet.connected("a")
        try:
            yield fleet, runtime
        finally:
            for gate in runtime.gates.values():
                gate.open()


def whole_node(spec: JobSpec) -> JobSpec:
    """The same with the fixed port, and on a node for itself."""
    ports = (PortRequest(name="data", port=PORT),)
    resources = Resources(cpu_millis=CPUS * 1000)
    return replace(spec, roles=tuple(replace(role, ports=ports, resources=resources) for role in spec.roles))


def waits_for(job: JobView) -> Callable[[JobView], bool]:
    """Whether somebody waits for what the only execution of a job has left running."""
    detail = f"waiting until nothing of execution {executions(job)[0].id} runs any more, which has ended"
    return lambda view: executions(view)[0].detail == detail


async def test_jobs_in_a_row_have_the_same_port(tmp_path: Path) -> None:
    async with node(tmp_path) as (fleet, _):
        spec = whole_node(command(*python(LISTEN)))
        jobs = await fleet.client.jobs.submit_many([spec] * 6)
        assert [(await fleet.client.jobs.wait(job)).summary for job in jobs] == ["all succeeded"] * 6


async def test_the_next_attempt_has_the_port_of_the_one_that_failed(tmp_path: Path) -> None:
    script = f"{LISTEN}\nos._exit(os.environ['MUSTER_ATTEMPT'] != '3')"
    async with node(tmp_path) as (fleet, _):
        restarts = RestartPolicy(limit=2, backoff=timedelta(seconds=1))
        job = await fleet.run(replace(whole_node(command(*python(script))), restarts=restarts))
        assert (job.phase, len(job.attempts)) == (JobPhase.SUCCEEDED, 3)


async def test_the_next_attempt_has_the_port_of_one_that_never_ran(tmp_path: Path) -> None:
    async with node(tmp_path) as (fleet, runtime):
        runtime.gates["arm"].faults = [ExecutionError(FailureKind.RUNTIME, "the engine is away")]
        job = await fleet.run(replace(whole_node(shell("true")), restarts=RestartPolicy(infrastructure=1)))
        assert (job.phase, len(job.attempts)) == (JobPhase.SUCCEEDED, 2)


async def test_a_job_has_the_port_of_one_that_was_stopped_before_it_ran(tmp_path: Path) -> None:
    async with node(tmp_path) as (fleet, runtime):
        runtime.gates["arm"].close()
        first = await fleet.client.jobs.submit(whole_node(shell("true")))
        await runtime.gates["arm"].reached.wait()
        await fleet.client.jobs.stop(first.id)
        runtime.gates["arm"].open()  # what is being armed is armed to the end before it is stopped
        assert (await fleet.client.jobs.wait(first.id)).phase is JobPhase.STOPPED
        assert (await fleet.run(whole_node(shell("true")))).phase is JobPhase.SUCCEEDED


async def test_a_child_that_listens_on_ends_with_its_program_and_the_next_job_has_the_port(
    tmp_path: Path,
) -> None:
    async with node(tmp_path) as (fleet, runtime):
        runtime.gates["vacate"].close()
        first = await fleet.run(whole_node(command(*python(LEAVE_A_LISTENER))))
        child, told = await fleet.texts(first.id, follow=True)
        assert (first.phase, told) == (JobPhase.SUCCEEDED, f"0 {KILLED}")
        assert not psutil.pid_exists(int(child.removeprefix("0 ")))
        second = await fleet.client.jobs.submit(whole_node(command(*python(LISTEN))))
        await fleet.until(second.id, waits_for(first))
        runtime.gates["vacate"].open()
        assert (await fleet.client.jobs.wait(second.id)).summary == "all succeeded"


async def test_a_child_that_holds_the_output_is_ended_too(tmp_path: Path) -> None:
    listening = LEAVE_A_LISTENER.replace("os.close(output)", "pass")
    async with node(tmp_path) as (fleet, _):
        jobs = [whole_node(command(*python(listening))), whole_node(command(*python(LISTEN)))]
        first, second = await fleet.client.jobs.submit_many(jobs)
        assert (await fleet.client.jobs.wait(second)).summary == "all succeeded"
        *_, last = await fleet.texts(first, follow=True)
        assert last == f"0 {KILLED}"


async def test_who_waits_for_a_port_can_be_stopped(tmp_path: Path) -> None:
    async with node(tmp_path) as (fleet, runtime):
        runtime.gates["vacate"].close()
        first = await fleet.run(whole_node(shell("true")))
        second = await fleet.client.jobs.submit(whole_node(shell("true")))
        await fleet.until(second.id, waits_for(first))
        await fleet.client.jobs.stop(second.id)
        job = await fleet.client.jobs.wait(second.id)
        assert (job.phase, states_of(job)) == (JobPhase.STOPPED, (State.STOPPED,))


async def test_what_cannot_be_ended_at_first_is_ended_later(tmp_path: Path) -> None:
    async with node(tmp_path) as (fleet, runtime):
        runtime.gates["vacate"].close()
        runtime.gates["vacate"].faults = [ExecutionError(FailureKind.RUNTIME, "processes [1] hang in the kernel")]
        first = await fleet.run(whole_node(shell("true")))
        runtime.gates["vacate"].open()
        await fleet.journal.heard("cannot stop or clear away yet", execution=executions(first)[0].id)
        assert (await fleet.run(whole_node(shell("true")))).phase is JobPhase.SUCCEEDED


async def test_who_lost_its_supervisor_has_no_port_any_more(tmp_path: Path) -> None:
    async with node(tmp_path) as (fleet, _):
        spec = whole_node(shell("echo $PPID; exec sleep 60"))
        job = await fleet.client.jobs.submit(replace(spec, restarts=RestartPolicy(infrastructure=0)))
        [line] = await fleet.printed(job.id, 1)
        os.kill(int(line.text), signal.SIGKILL)
        assert (await fleet.client.jobs.wait(job.id)).phase is JobPhase.FAILED
        assert (await fleet.run(whole_node(shell("true")))).phase is JobPhase.SUCCEEDED
