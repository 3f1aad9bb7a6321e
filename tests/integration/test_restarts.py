"""Coordinator and agents end and come back; jobs, logs and the queue outlive it."""

import os
from pathlib import Path

import psutil
import pytest

from muster.domain.jobs.failure import FailureKind
from muster.domain.jobs.lifecycle import JobPhase, State
from tests.integration.fleet import executions, python, running_fleet
from tests.integration.jobs import command, shell
from tests.integration.obstacles import RuntimeWithObstacles

PRINT = """
import os, sys
lines, parts = 20_000, 3
for part in range(parts):
    if part:
        open(os.environ["GATE"] + os.environ["RANK"]).read()
    for number in range(part * lines // parts, (part + 1) * lines // parts):
        print(f"out {number}")
        print(f"err {number}", file=sys.stderr)
    sys.stdout.flush()
"""
EXPECTED = {
    stream: b"".join(b"%s %d\n" % (word, n) for n in range(20_000))
    for stream, word in (("stdout", b"out"), ("stderr", b"err"))
}


async def test_a_queue_outlives_its_coordinator(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        running = await fleet.client.jobs.submit(shell("exec sleep 60", gpus=8))
        await fleet.until_states(running.id, State.RUNNING)
        low, high = [await fleet.client.jobs.submit(shell("true", gpus=8, priority=priority)) for priority in (0, 5)]
        await fleet.restart_coordinator()
        await fleet.connected("a", 2)
        assert (await fleet.client.jobs.get(running.id)).phase is JobPhase.RUNNING
        assert [(await fleet.client.jobs.why(job.id)).queue_position for job in (high, low)] == [1, 2]
        await fleet.client.jobs.stop(running.id)
        ended = [(await fleet.client.jobs.wait(job.id)).ended_at for job in (running, high, low)]
        assert ended == sorted(ended, key=str)


async def test_logs_are_complete_to_the_byte_though_the_coordinator_restarts_twice(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    for rank in "01":
        os.mkfifo(f"{gate}{rank}")
    async with running_fleet(tmp_path, "a", "b") as fleet:
        spec = command(*python(PRINT), workers=2, max_per_node=1, env={"GATE": str(gate)})
        job = await fleet.client.jobs.submit(spec)
        await fleet.printed(job.id, 1000)
        for times in (2, 3):
            await fleet.restart_coordinator()
            for rank in "01":
                await fleet.tell(Path(f"{gate}{rank}"))
            for node in "ab":
                await fleet.connected(node, times)
        lines = await fleet.output(job.id, follow=True)
        assert (await fleet.client.jobs.wait(job.id)).phase is JobPhase.SUCCEEDED
        for number in range(2):
            for stream, expected in EXPECTED.items():
                got = b"".join(line.text + b"\n" for line in lines if (line.rank, line.stream) == (number, stream))
                assert got == expected


async def test_a_follower_misses_nothing_when_the_coordinator_restarts(tmp_path: Path) -> None:
    fifo = tmp_path / "gate0"
    os.mkfifo(fifo)
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.client.jobs.submit(command(*python(PRINT), env={"GATE": str(tmp_path / "gate")}))
        got = {"stdout": b"", "stderr": b""}
        restart_at = [5_000, 20_000]
        lines = 0
        async for line in fleet.client.jobs.logs(job.id, follow=True):
            got[line.stream] += line.text + b"\n"
            lines += 1
            if lines in restart_at:
                await fleet.restart_coordinator()
                await fleet.tell(fifo)
        assert (lines, got) == (40_000, EXPECTED)


@pytest.mark.parametrize("gate", ["prepare", "arm", "start"])
async def test_a_job_goes_on_in_every_phase_when_the_coordinator_restarts(tmp_path: Path, gate: str) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        late = RuntimeWithObstacles()
        late.gates[gate].close()
        await fleet.start_agent("b", runtime=late)
        await fleet.connected("b")
        job = await fleet.client.jobs.submit(shell("true", 2, max_per_node=1))
        await late.gates[gate].reached.wait()
        await fleet.restart_coordinator()
        await fleet.connected("b", 2)
        late.gates[gate].open()
        ended = await fleet.client.jobs.wait(job.id)
        assert (ended.phase, len(ended.attempts)) == (JobPhase.SUCCEEDED, 1)
        assert await fleet.output(job.id, follow=True) == []


async def test_a_worker_that_ends_while_there_is_no_coordinator_is_reported_later(tmp_path: Path) -> None:
    fifo = tmp_path / "go"
    os.mkfifo(fifo)
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.client.jobs.submit(shell(f"read line < {fifo}; echo last words; exit 7"))
        await fleet.until_states(job.id, State.RUNNING)
        await fleet.crash_coordinator()
        await fleet.tell(fifo)
        await fleet.start_coordinator()
        job = await fleet.client.jobs.wait(job.id)
        assert job.failure is not None
        assert (job.failure.message, job.failure.log_tail) == ("ended with exit code 7", ("last words",))
        assert await fleet.texts(job.id, follow=True) == ["0 last words"]


async def test_a_job_that_is_stopped_while_its_node_is_away_ends_when_it_is_back(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.client.jobs.submit(shell("exec sleep 60"))
        await fleet.until_states(job.id, State.RUNNING)
        fleet.cable("a").cut()
        await fleet.journal.heard("node disconnected", node="a")
        assert (await fleet.client.jobs.stop(job.id)).phase is JobPhase.STOPPING
        fleet.cable("a").mend()
        assert (await fleet.client.jobs.wait(job.id)).phase is JobPhase.STOPPED


async def test_what_an_agent_that_restarts_was_running_is_named_as_lost_with_it(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a", "b") as fleet:
        job = await fleet.client.jobs.submit(shell("echo $$; exec sleep 60", 2, max_per_node=1))
        pids = {line.rank: int(line.text) for line in await fleet.printed(job.id, 2)}
        (culprit,) = [each for each in executions(await fleet.client.jobs.get(job.id)) if each.node == "b"]
        await fleet.stop_agent("b")
        assert not psutil.pid_exists(pids[culprit.rank])
        await fleet.start_agent("b")
        job = await fleet.client.jobs.wait(job.id)
        assert job.failure is not None
        assert (job.failure.kind, job.failure.rank, job.failure.node) == (
            FailureKind.AGENT_RESTARTED,
            culprit.rank,
            "b",
        )
        assert "agent restarted" in job.failure.message
        assert not any(map(psutil.pid_exists, pids.values()))
        assert (await fleet.run(shell("true", 2, max_per_node=1))).phase is JobPhase.SUCCEEDED
        await fleet.journal.heard("execution cleared away", execution=culprit.id)


async def test_a_job_that_was_only_being_prepared_goes_on_with_the_agent_that_restarts(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        late = RuntimeWithObstacles()
        late.gates["prepare"].close()
        await fleet.start_agent("b", runtime=late)
        await fleet.connected("b")
        job = await fleet.client.jobs.submit(shell("true", 2, max_per_node=1))
        await late.gates["prepare"].reached.wait()
        await fleet.stop_agent("b")
        await fleet.start_agent("b")
        ended = await fleet.client.jobs.wait(job.id)
        assert (ended.phase, len(ended.attempts)) == (JobPhase.SUCCEEDED, 1)


async def test_outputs_of_a_former_life_are_kept(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.client.jobs.submit(shell("echo result > $MUSTER_OUTPUTS_DIR/model; echo done; exec sleep 60"))
        await fleet.printed(job.id, 1)
        await fleet.stop_agent("a")
        await fleet.start_agent("a")
        kept = fleet.state_of("a") / "outputs" / f"{job.id}-1-0" / "model"
        assert kept.read_text() == "result\n"
        assert (await fleet.client.jobs.wait(job.id)).phase is JobPhase.FAILED


async def test_what_was_known_of_an_ended_job_is_known_after_a_restart(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.run(shell("echo words; exit 2", 2))
        lines = await fleet.output(job.id, follow=True)
        before = await fleet.client.jobs.get(job.id)
        await fleet.stop_coordinator()
        await fleet.start_coordinator()
        after = await fleet.client.jobs.get(job.id)
        assert (after.failure, after.attempts[0].executions[0].transitions) == (
            before.failure,
            before.attempts[0].executions[0].transitions,
        )
        assert await fleet.output(job.id) == lines
