"""How a container ended is judged rightly where its engine is late, refuses, or is followed by another."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent.executions.layout import ExecutionDirectory
from agent.runtimes.docker.ends import ContainerEnd, end_told
from agent.runtimes.docker.engine.connection import PROMPT_PING, EngineError
from agent.runtimes.docker.engine.engine import DockerEngine
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, Exit, FailureKind
from tests.contract.canned_engine import CONTAINER, DESERTED, NOT_FOUND, RUNS, UNAVAILABLE, CannedEngine, socket_of

LATE = PROMPT_PING + 0.1
GONE = 1 << 30
"""A number that no process has."""
AT_ONCE = 0.001
NO_NOTES = ExecutionDirectory(Path("/nowhere"), ExecutionId("j-1-0"))
"""The directory of an execution whose container noted nothing."""


@asynccontextmanager
async def asked(canned: CannedEngine, directory: Path) -> AsyncIterator[DockerEngine]:
    """The agent's way to an engine."""
    path = directory / "docker.sock"
    async with socket_of(path) as listener, canned.listening(listener):
        engine = DockerEngine(path)
        try:
            yield engine
        finally:
            await engine.connection.close()


async def test_an_engine_that_is_late_with_its_ping_has_not_ended_what_ended_by_itself(tmp_path: Path) -> None:
    canned = CannedEngine(exit_code=3, ping_after=LATE)
    async with asked(canned, tmp_path) as engine:
        canned.end()
        assert await ContainerEnd(engine, NO_NOTES).outcome(CONTAINER) == Exit(code=3)


async def test_an_end_that_a_late_engine_tells_is_believed(tmp_path: Path) -> None:
    canned = CannedEngine(exit_code=3, ping_after=LATE)
    async with asked(canned, tmp_path) as engine:
        end = ContainerEnd(engine, NO_NOTES)
        end.expect_running()
        waiting = asyncio.create_task(end.outcome(CONTAINER), name="waiting")
        await canned.waited.wait()
        canned.end()
        assert await waiting == Exit(code=3)


async def test_a_container_whose_engine_is_followed_by_another_on_its_socket_was_taken_along(tmp_path: Path) -> None:
    stopped = CannedEngine(exit_code=143)
    follower = CannedEngine(exit_code=143, running=False, ping_after=LATE)
    async with socket_of(tmp_path / "docker.sock") as listener:
        engine = DockerEngine(tmp_path / "docker.sock")
        async with stopped.listening(listener):
            end = ContainerEnd(engine, NO_NOTES)
            end.expect_running()
            waiting = asyncio.create_task(end.outcome(CONTAINER), name="waiting")
            await stopped.waited.wait()
        async with follower.listening(listener):
            outcome = await waiting
        await engine.connection.close()
    assert isinstance(outcome, ExecutionError)
    assert outcome.kind is FailureKind.RUNTIME
    assert "Docker was stopped on the node" in str(outcome)


@pytest.mark.parametrize("looks", [[DESERTED], [NOT_FOUND], [UNAVAILABLE, DESERTED], [UNAVAILABLE, NOT_FOUND]])
async def test_an_end_that_was_missed_is_told_whatever_is_refused_before(tmp_path: Path, looks: list[int]) -> None:
    canned = CannedEngine(exit_code=5, pid=GONE, looks=looks)
    async with asked(canned, tmp_path) as engine:
        assert await end_told(engine.containers, CONTAINER, AT_ONCE)
    assert canned.kills == 1


async def test_a_container_whose_processes_only_the_engine_sees_is_not_killed_by_looking(tmp_path: Path) -> None:
    canned = CannedEngine(pid=GONE, looks=[RUNS, RUNS], ends_after_looks=True)
    async with asked(canned, tmp_path) as engine:
        assert not await end_told(engine.containers, CONTAINER, AT_ONCE)
    assert canned.kills == 0


async def test_who_may_not_wait_for_an_end_is_told_so(tmp_path: Path) -> None:
    canned = CannedEngine(wait_refusal=NOT_FOUND)
    async with asked(canned, tmp_path) as engine:
        with pytest.raises(EngineError):
            await end_told(engine.containers, CONTAINER, AT_ONCE)


@pytest.mark.parametrize(("code", "outcome"), [(5, Exit(code=5)), (255, None)])
async def test_an_exit_code_that_an_engine_may_have_made_up_when_it_was_made_to_look_is_not_believed(
    tmp_path: Path, code: int, outcome: Exit | None
) -> None:
    canned = CannedEngine(exit_code=code, pid=GONE, looks=[NOT_FOUND])
    async with asked(canned, tmp_path) as engine:
        told = await ContainerEnd(engine, NO_NOTES, look_every=AT_ONCE).outcome(CONTAINER)
    if outcome is None:
        assert "Docker does not know how the execution ended" in str(told)
    else:
        assert told == outcome
