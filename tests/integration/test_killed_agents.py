"""Programs of agents and their killers: when one is killed, what it ran is dead before anything can begin anew."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import psutil

from agent.fencing.deadlines import why_fenced
from agent.fencing.killer import KILLER_PROGRAM
from agent.fencing.killer_program import MESSAGE
from coordinator.core.answers import Accepted
from coordinator.core.events import JobSubmitted
from muster.domain.ids import AttemptId, JobId
from muster.domain.jobs.disconnect import OnDisconnect
from muster.domain.jobs.failure import Exit, Failure, FailureKind
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.lifecycle import State
from tests.contract.killers import gone
from tests.integration.fleet import SECRET, Fleet, running_fleet
from tests.integration.jobs import shell
from tests.integration.programs import ROOT, runs

LOST_AFTER = timedelta(seconds=8)
"""Less than a job may ask for, and more than the program needs until user code runs."""
STUBBORN = "trap '' TERM; echo $$ >fifo; while true; do sleep 1000 & wait; done"


@asynccontextmanager
async def agent_program(fleet: Fleet, state: Path, *options: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A node, or several; killed at the end."""
    token = fleet.directory / "token"
    token.write_text(SECRET)
    token.chmod(0o600)
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "agent", "--coordinator", fleet.address, "--state", str(state), "--name", "n"),
        *("--processes", "--job-user", "none", "--no-docker", "--gpu-provider", "fake:1xT4", "--address", "127.0.0.1"),
        *("--ports", "30900-30949", "--token-file", str(token), *options),
        cwd=ROOT,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield program
    finally:
        if program.returncode is None:
            program.kill()
        await program.wait()


async def submit_urgent(fleet: Fleet, spec: JobSpec) -> JobId:
    """Past the edge, which would refuse so short a time."""
    spec = replace(
        spec, project="default", timeouts=replace(spec.timeouts, lost_after=LOST_AFTER, grace=timedelta(seconds=1))
    )
    answer = await fleet.engine.apply(JobSubmitted(job=JobId("urgent"), spec=spec))
    assert isinstance(answer, Accepted)
    return answer.job.id


async def failure_of(fleet: Fleet, job: JobId) -> Failure | None:
    """The failure of its first attempt, once that has ended."""
    with fleet.engine.signals.listen(job) as listener:
        while (
            attempt := await fleet.engine.query(lambda cluster, _: cluster.attempts[AttemptId(job, 1)])
        ).ended_at is None:
            await listener.wait()
    return attempt.failure


async def test_user_code_is_dead_before_its_node_may_be_called_lost(tmp_path: Path) -> None:
    fifo, state = tmp_path / "fifo", tmp_path / "node"
    os.mkfifo(fifo)
    script = STUBBORN.replace("fifo", str(fifo))
    async with running_fleet(tmp_path) as fleet:
        async with agent_program(fleet, state) as program:
            await fleet.connected("n")
            job = await submit_urgent(fleet, shell(script, on_disconnect=OnDisconnect.STOP))
            user_code = psutil.Process(int(await asyncio.to_thread(fifo.read_text)))
            async with asyncio.timeout(LOST_AFTER.total_seconds()):
                program.kill()
                await program.wait()
                assert runs(user_code)
                await asyncio.to_thread(gone, user_code.pid)
        assert why_fenced(state / "executions" / f"{job}-1-0") == MESSAGE
        async with agent_program(fleet, state):
            failure = await failure_of(fleet, job)
            assert failure is not None
            assert (failure.kind, failure.message) == (FailureKind.NODE_LOST, MESSAGE)
            assert failure.exit == Exit(code=137)


def killers_of(agent: int) -> list[psutil.Process]:
    """The killers that an agent program has."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if any(KILLER_PROGRAM in word for word in words) and any(word.startswith(f"{agent}-") for word in words):
            found.append(process)
    return found


async def test_all_nodes_of_a_program_share_a_killer_which_goes_with_them(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet:
        async with agent_program(fleet, tmp_path / "nodes", "--local-nodes", "4") as program:
            for number in range(1, 5):
                await fleet.connected(f"local-{number}")
            gang = await fleet.client.jobs.submit(shell("exec sleep 1000", workers=4, max_per_node=1))
            await fleet.until_states(gang.id, *[State.RUNNING] * 4)
            [killer] = killers_of(program.pid)
            program.terminate()  # local nodes stop what they run
            await program.wait()
        await asyncio.to_thread(gone, killer.pid)
