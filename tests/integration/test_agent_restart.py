"""A real agent that is killed or restarted while its processes run, in front of a real coordinator."""

import asyncio
import signal
from pathlib import Path

import pytest

from muster.cli.local.fleet import client_of
from muster.domain.jobs.disconnect import OnDisconnect
from muster.domain.jobs.failure import FailureKind
from muster.domain.jobs.job import JobSpec, PortRequest, Role
from muster.domain.jobs.lifecycle import JobPhase
from tests.integration.programs import PORTS, agent, coordinator

LINES = 300

SCRIPT = f"""
seq 1 {LINES}; seq 1 {LINES} >&2
while [ ! -e "$GO" ]; do sleep 0.02; done
seq {LINES + 1} {2 * LINES}
touch "$DONE"
exit "$CODE"
"""


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("when", ["while it runs", "meanwhile"])
@pytest.mark.parametrize("code", [0, 3])
async def test_a_job_outlives_its_agent(tmp_path: Path, ending: signal.Signals, when: str, code: int) -> None:
    go, done = tmp_path / "go", tmp_path / "done"
    env = {"GO": str(go), "DONE": str(done), "CODE": str(code)}
    role = Role(command=("/bin/sh", "-c", SCRIPT), env=env, ports=(PortRequest(name="master", port=PORTS.start),))
    async with coordinator(tmp_path) as login, client_of(login) as client:
        async with agent(tmp_path, login, ending=ending):
            job = await client.jobs.submit(JobSpec(name="long", roles=(role,)), queue_anyway=True)
            async for line in client.jobs.logs(job.id, follow=True):
                if (line.stream, line.text) == ("stdout", b"%d" % LINES):
                    break
        if when == "meanwhile":
            go.touch()
            while not done.exists():  # noqa: ASYNC110 (nobody else is there to tell)
                await asyncio.sleep(0.01)
        async with agent(tmp_path, login):
            go.touch()
            ended = await client.jobs.wait(job.id)
            lines = [(line.stream, int(line.text)) async for line in client.jobs.logs(job.id, follow=True)]
    assert ended.phase is (JobPhase.FAILED if code else JobPhase.SUCCEEDED)
    assert (ended.failure.exit.code if ended.failure and ended.failure.exit else 0) == code
    assert [number for stream, number in lines if stream == "stdout"] == list(range(1, 2 * LINES + 1))
    assert [number for stream, number in lines if stream == "stderr"] == list(range(1, LINES + 1))


async def test_what_ended_without_an_agent_has_no_port_any_more(tmp_path: Path) -> None:
    """Nor has what it left running, which the next agent ends."""
    go, done = tmp_path / "go", tmp_path / "done"
    env = {"GO": str(go), "DONE": str(done), "CODE": "0"}
    ports = (PortRequest(name="master", port=PORTS.start),)
    left = Role(command=("/bin/sh", "-c", f"(sleep 1000 >/dev/null 2>&1 &); {SCRIPT}"), env=env, ports=ports)
    next_one = Role(command=("true",), ports=ports)
    async with coordinator(tmp_path) as login, client_of(login) as client:
        async with agent(tmp_path, login, ending=signal.SIGKILL):
            job = await client.jobs.submit(JobSpec(name="first", roles=(left,)), queue_anyway=True)
            async for line in client.jobs.logs(job.id, follow=True):
                if (line.stream, line.text) == ("stdout", b"%d" % LINES):
                    break
        go.touch()
        record = tmp_path / "node" / "executions" / f"{job.id}-1-0" / "process.json"
        while '"complete"' not in record.read_text():  # noqa: ASYNC110 - a supervisor tells nobody but by its record
            await asyncio.sleep(0.01)
        async with agent(tmp_path, login):
            assert (await client.jobs.wait(job.id)).phase is JobPhase.SUCCEEDED
            second = await client.jobs.submit(JobSpec(name="second", roles=(next_one,)))
            assert (await client.jobs.wait(second.id)).summary == "all succeeded"


async def test_what_ended_without_an_agent_was_not_cut_off(tmp_path: Path) -> None:
    """Nobody knows any more how long it was allowed to run, which does not matter once it has ended."""
    go, done, state = tmp_path / "go", tmp_path / "done", tmp_path / "node"
    env = {"GO": str(go), "DONE": str(done), "CODE": "3"}
    spec = JobSpec(
        name="stopper",
        roles=(Role(command=("/bin/sh", "-c", SCRIPT), env=env),),
        on_disconnect=OnDisconnect.STOP,
    )
    async with coordinator(tmp_path) as login, client_of(login) as client:
        async with agent(tmp_path, login, ending=signal.SIGKILL):
            job = await client.jobs.submit(spec, queue_anyway=True)
            async for line in client.jobs.logs(job.id, follow=True):
                if (line.stream, line.text) == ("stdout", b"%d" % LINES):
                    break
        go.touch()
        while '"code"' not in (state / "executions" / f"{job.id}-1-0" / "process.json").read_text():  # noqa: ASYNC110 - a supervisor tells nobody but by its record
            await asyncio.sleep(0.01)
        (state / "deadlines.json").unlink()
        async with agent(tmp_path, login):
            ended = await client.jobs.wait(job.id)
    assert (ended.failure.kind if ended.failure else None) is FailureKind.EXIT_CODE
