"""How jobs end: by themselves, by a failure, by an order; and what is left of them."""

import os
from datetime import timedelta
from pathlib import Path

import psutil
import pytest

from agent.executions.layout import PROCESS_RECORD as RECORD
from muster.domain.errors import ConflictError, UnknownNameError
from muster.domain.jobs.failure import Exit, FailureKind
from muster.domain.jobs.lifecycle import JobPhase, State, SuccessRule
from tests.integration.fleet import executions, running_fleet, states_of
from tests.integration.jobs import shell
from tests.integration.obstacles import RuntimeWithObstacles

LAST_LINES = 'for i in $(seq 30); do echo "line $i"; done; echo "it is broken" >&2;'


async def test_one_rank_that_fails_ends_the_job_and_is_named(tmp_path: Path) -> None:
    script = f"if [ $RANK = 1 ]; then {LAST_LINES} exit 3; else exec sleep 60; fi"
    async with running_fleet(tmp_path, "a", "b", "c") as fleet:
        job = await fleet.run(shell(script, 3, max_per_node=1))

    assert job.phase is JobPhase.FAILED
    assert states_of(job) == (State.STOPPED, State.FAILED, State.STOPPED)
    failure = job.failure
    assert failure is not None
    assert (failure.kind, failure.rank, failure.node) == (FailureKind.EXIT_CODE, 1, executions(job)[1].node)
    assert (failure.message, failure.exit) == ("ended with exit code 3", Exit(code=3))
    assert failure.log_tail[-1] == "it is broken"
    assert failure.log_tail[0] == "line 12"
    assert [each.exit for each in executions(job)] == [Exit(code=143), Exit(code=3), Exit(code=143)]


async def test_a_rank_that_is_killed_is_named_with_the_signal(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.run(shell("if [ $RANK = 0 ]; then kill -KILL $$; else exec sleep 60; fi", 2))
        assert job.failure is not None
        assert (job.failure.kind, job.failure.rank) == (FailureKind.SIGNAL, 0)
        assert job.summary == "rank 0 on a: was killed by SIGKILL"


async def test_the_first_failure_counts_whatever_comes_after_it(tmp_path: Path) -> None:
    """Rank 0 fails because rank 1 did."""
    fifo = tmp_path / "go"
    os.mkfifo(fifo)
    script = f'trap "exit 9" TERM; if [ $RANK = 1 ]; then read line < {fifo}; exit 4; fi; echo ready; sleep 60 & wait'
    async with running_fleet(tmp_path, "a", "b") as fleet:
        job = await fleet.client.jobs.submit(shell(script, 2, max_per_node=1))
        await fleet.printed(job.id, 1)
        await fleet.tell(fifo)
        job = await fleet.client.jobs.wait(job.id)
        assert job.failure is not None
        assert (job.failure.rank, job.failure.exit) == (1, Exit(code=4))
        assert [each.exit for each in executions(job)] == [Exit(code=9), Exit(code=4)]


async def test_rank_0_alone_decides_if_the_job_says_so(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        spec = shell("[ $RANK = 0 ] || exec sleep 60", 3, success=SuccessRule.RANK0)
        job = await fleet.run(spec)
        assert (job.phase, job.failure) == (JobPhase.SUCCEEDED, None)
        assert states_of(job) == (State.SUCCEEDED, State.STOPPED, State.STOPPED)


async def test_a_rank_that_ends_well_does_not_end_the_job(tmp_path: Path) -> None:
    fifo = tmp_path / "go"
    os.mkfifo(fifo)
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.client.jobs.submit(shell(f"[ $RANK = 1 ] || read line < {fifo}", 2))
        await fleet.until_states(job.id, State.RUNNING, State.SUCCEEDED)
        await fleet.tell(fifo)
        assert (await fleet.client.jobs.wait(job.id)).phase is JobPhase.SUCCEEDED


@pytest.mark.parametrize(("gate", "state"), [("prepare", State.PREPARING), ("arm", State.CHECKED_IN)])
async def test_a_job_is_stopped_before_it_runs(tmp_path: Path, gate: str, state: State) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        late = RuntimeWithObstacles()
        late.gates[gate].close()
        await fleet.start_agent("b", runtime=late)
        await fleet.connected("b")
        job = await fleet.client.jobs.submit(shell("echo ran", 2, max_per_node=1))
        await late.gates[gate].reached.wait()
        await fleet.until(job.id, lambda view: state in states_of(view))
        stopping = await fleet.client.jobs.stop(job.id)
        assert stopping.phase is JobPhase.STOPPING
        late.gates["arm"].open()
        job = await fleet.client.jobs.wait(job.id)
        assert (job.phase, states_of(job)) == (JobPhase.STOPPED, (State.STOPPED, State.STOPPED))
        assert job.summary == "stopped on request"
        assert await fleet.output(job.id, follow=True) == []


async def test_a_running_job_is_stopped_in_its_grace(tmp_path: Path) -> None:
    # A shell that has just forked loses a signal for its child now and then; so the child has no hold on the output.
    script = 'trap "echo saved; exit 0" TERM; echo ready; sleep 60 > /dev/null 2>&1 & wait'
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.client.jobs.submit(shell(script, 2))
        await fleet.printed(job.id, 2)
        await fleet.client.jobs.stop(job.id)
        job = await fleet.client.jobs.wait(job.id)
        assert (job.phase, states_of(job)) == (JobPhase.STOPPED, (State.STOPPED, State.STOPPED))
        assert sorted(await fleet.texts(job.id, follow=True)) == ["0 ready", "0 saved", "1 ready", "1 saved"]


async def test_children_have_the_grace_too_before_their_execution_counts_as_stopped(tmp_path: Path) -> None:
    """The leader of the session goes at once; what it started saves its work first."""
    fifo = tmp_path / "go"
    os.mkfifo(fifo)
    child = f'(trap "read line < {fifo}; echo saved; exit 0" TERM; sleep 60 & echo ready; wait) &'
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.client.jobs.submit(shell(f"{child} exec sleep 60"))
        await fleet.printed(job.id, 1)
        await fleet.client.jobs.stop(job.id)
        await fleet.tell(fifo)
        job = await fleet.client.jobs.wait(job.id)
        assert await fleet.texts(job.id, follow=True) == ["0 ready", "0 saved"]


async def test_what_ignores_the_order_to_stop_is_killed(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        script = 'trap "" TERM; echo ready; while :; do sleep 60; done'
        job = await fleet.client.jobs.submit(shell(script, grace=timedelta(seconds=0.2)))
        await fleet.printed(job.id, 1)
        await fleet.client.jobs.stop(job.id)
        job = await fleet.client.jobs.wait(job.id)
        assert (job.phase, executions(job)[0].exit) == (JobPhase.STOPPED, Exit(code=137))


async def test_stopping_again_changes_nothing(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.client.jobs.submit(shell("sleep 60"))
        await fleet.until_states(job.id, State.RUNNING)
        for _ in range(3):
            await fleet.client.jobs.stop(job.id)
        ended = await fleet.client.jobs.wait(job.id)
        again = await fleet.client.jobs.stop(job.id)
        assert (ended.phase, ended.ended_at) == (JobPhase.STOPPED, again.ended_at)


async def test_a_job_that_ended_well_stays_so_when_it_is_stopped(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.run(shell("true"))
        again = await fleet.client.jobs.stop(job.id)
        assert (again.phase, again.ended_at, states_of(again)) == (job.phase, job.ended_at, (State.SUCCEEDED,))


async def test_a_job_that_waits_is_stopped_without_a_node(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet:
        job = await fleet.client.jobs.submit(shell("true"), queue_anyway=True)
        assert (await fleet.client.jobs.stop(job.id)).phase is JobPhase.STOPPED


async def test_a_run_time_limit_ends_the_job(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.run(shell("exec sleep 60", 2, run=timedelta(seconds=0.3)))
        assert job.failure is not None
        assert (job.phase, job.failure.kind) == (JobPhase.FAILED, FailureKind.TIME_LIMIT)


async def test_a_running_job_is_only_deleted_by_force_and_nothing_of_it_stays(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.client.jobs.submit(shell("echo something; exec sleep 60"))
        await fleet.printed(job.id, 1)
        with pytest.raises(ConflictError, match="stop"):
            await fleet.client.jobs.delete(job.id)
        assert await fleet.client.jobs.delete(job.id, force=True) == job.id
        await fleet.journal.heard("execution cleared away", execution=f"{job.id}-1-0")
        assert fleet.execution_directories() == []
        with pytest.raises(UnknownNameError):
            await fleet.client.jobs.get(job.id)
        assert list((fleet.directory / "logs").iterdir()) == []


async def test_a_job_that_ended_is_deleted_with_its_logs(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.run(shell("echo something"))
        assert await fleet.texts(job.id, follow=True) == ["0 something"]
        await fleet.client.jobs.delete(job.id)
        with pytest.raises(UnknownNameError):
            await fleet.client.jobs.get(job.id)
        assert list((fleet.directory / "logs").iterdir()) == []


async def test_outputs_are_kept_and_everything_else_is_cleared_away(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.run(
            shell("if [ $RANK = 0 ]; then echo result > $MUSTER_OUTPUTS_DIR/model; fi; echo x > junk", 2)
        )
        for execution in executions(job):
            await fleet.journal.heard("execution cleared away", execution=execution.id)
        assert fleet.execution_directories() == []
        outputs = fleet.state_of("a") / "outputs"
        assert [path.name for path in outputs.iterdir()] == [f"{job.id}-1-0"]
        assert (outputs / f"{job.id}-1-0" / "model").read_text() == "result\n"


async def test_what_cannot_be_cleared_away_at_first_is_cleared_away_later(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet:
        stubborn = RuntimeWithObstacles()
        stubborn.gates["remove"].faults = [OSError("the daemon is away")]
        await fleet.start_agent("a", runtime=stubborn)
        await fleet.connected("a")
        job = await fleet.run(shell("true"))
        await fleet.journal.heard("cannot stop or clear away yet", cause="the daemon is away")
        await fleet.journal.heard("execution cleared away", execution=f"{job.id}-1-0")
        assert fleet.execution_directories() == []


async def test_what_cannot_be_stopped_at_first_counts_as_running_until_it_is_stopped(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet:
        stubborn = RuntimeWithObstacles()
        stubborn.gates["stop"].faults = [OSError("the daemon is away")]
        await fleet.start_agent("a", runtime=stubborn)
        await fleet.connected("a")
        job = await fleet.client.jobs.submit(shell("exec sleep 60"))
        await fleet.until_states(job.id, State.RUNNING)
        await fleet.client.jobs.stop(job.id)
        await fleet.journal.heard("cannot stop or clear away yet", cause="the daemon is away")
        assert states_of(await fleet.client.jobs.get(job.id)) == (State.STOPPING,)
        assert (await fleet.client.jobs.wait(job.id)).phase is JobPhase.STOPPED


async def test_a_fault_of_the_agent_itself_fails_the_job_and_not_the_agent(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet:
        broken = RuntimeWithObstacles()
        broken.gates["arm"].faults = [ZeroDivisionError("oops")]
        await fleet.start_agent("a", runtime=broken)
        await fleet.connected("a")
        job = await fleet.run(shell("echo ran"))
        assert job.summary == "rank 0 on a: the agent failed: ZeroDivisionError: oops"
        fleet.journal.forgive("agent.loop.failures")
        assert (await fleet.run(shell("true"))).phase is JobPhase.SUCCEEDED


async def test_what_was_started_but_cannot_be_noted_down_does_not_run_on(tmp_path: Path) -> None:
    """An agent that crashed would not find it again."""
    others = {child.pid for child in psutil.Process().children()}
    async with running_fleet(tmp_path) as fleet:
        late = RuntimeWithObstacles()
        late.gates["start"].close()
        await fleet.start_agent("a", runtime=late)
        await fleet.connected("a")
        submitted = await fleet.client.jobs.submit(shell("exec sleep 60"))
        await late.gates["start"].reached.wait()
        late.gates["remove"].close()
        record = fleet.state_of("a") / "executions" / f"{submitted.id}-1-0" / RECORD
        record.unlink(missing_ok=True)
        record.mkdir()
        late.gates["start"].open()
        job = await fleet.client.jobs.wait(submitted.id)
        assert job.phase is JobPhase.FAILED
        assert [
            child.cmdline()
            for child in psutil.Process().children(recursive=True)
            if child.pid not in others and child.status() != psutil.STATUS_ZOMBIE and "sleep" in child.cmdline()
        ] == []
        late.gates["remove"].open()
