"""The Docker runtime over restarts of the agent."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.core.containers.spec import EXECUTION_LABEL, IDENTITY_LABEL
from muster.domain.gangs.log import Stream
from muster.domain.jobs.failure import ExecutionError, Exit, FailureKind
from muster.domain.jobs.job import Network
from tests.contract.docker_place import DockerPlace
from tests.contract.docker_restarts import WAITS, begin, failure_of, recovered
from tests.contract.docker_trials import assigned, script
from tests.docker_daemon import IMAGE, containers, request

pytestmark = pytest.mark.docker

LINES = 4000

CHATTY = (
    f"i=0; while [ $i -lt {LINES} ]; do "
    'echo "out $i ........................................................................"; '
    'echo "err $i ........................................................................" >&2; '
    "i=$((i+1)); done; exit 9"
)


@pytest.fixture
def place(tmp_path: Path, docker_socket: Path) -> Iterator[DockerPlace]:
    place = DockerPlace(tmp_path, docker_socket)
    yield place
    for left in containers(docker_socket, f"{IDENTITY_LABEL}={place.identity}"):
        request(docker_socket, "DELETE", f"/containers/{left['Id']}?force=1&v=1")


def expected(stream: str) -> list[bytes]:
    return [f"{stream} {number} {'.' * 72}".encode() for number in range(LINES)]


async def test_output_is_exact_however_often_the_agent_ends(place: DockerPlace, tmp_path: Path) -> None:
    assignment = assigned(script(CHATTY))
    await begin(place, tmp_path, assignment, "arm", "start")
    sizes = [0]
    for _ in range(6):
        async with recovered(place, tmp_path, assignment) as (it, _):
            while it.spool.size == sizes[-1]:
                it.spool.grew.clear()
                await it.spool.grew.wait()
            sizes.append(it.spool.size)
    async with recovered(place, tmp_path, assignment) as (it, started):
        assert started
        assert await it.end() == Exit(code=9)
        assert it.spool.size > sizes[-1], "the agent ended in the middle each time"
        assert it.printed(Stream.STDOUT) == expected("out")
        assert it.printed(Stream.STDERR) == expected("err")


async def test_an_execution_that_ended_meanwhile_has_its_code_and_its_output(
    place: DockerPlace, tmp_path: Path
) -> None:
    assignment = assigned(script("echo so far; sleep 0.2; echo the rest; exit 42"))
    await begin(place, tmp_path, assignment, "arm", "start")
    [container] = containers(place.socket, f"{EXECUTION_LABEL}={assignment.execution}")
    request(place.socket, "POST", f"/containers/{container['Id']}/wait")
    async with recovered(place, tmp_path, assignment) as (it, started):
        assert (started, it.sandbox.ended) == (True, True)
        assert await it.end() == Exit(code=42)
        assert it.printed() == [b"so far", b"the rest"]


async def test_an_execution_that_runs_is_watched_and_stopped_as_before(place: DockerPlace, tmp_path: Path) -> None:
    assignment = assigned(script(WAITS))
    await begin(place, tmp_path, assignment, "arm", "start")
    async with recovered(place, tmp_path, assignment) as (it, started):
        assert (started, it.sandbox.ended) == (True, False)
        await it.says(b"ready")
        await it.sandbox.stop(assignment.grace)
        assert await it.end() == Exit(code=3)
        await it.sandbox.remove()
    assert await place.left(assignment.execution) == []


async def test_an_execution_that_was_armed_can_still_be_started(place: DockerPlace, tmp_path: Path) -> None:
    assignment = assigned(script("echo ran"))
    await begin(place, tmp_path, assignment, "arm")
    async with recovered(place, tmp_path, assignment) as (it, started):
        assert not started
        with pytest.raises(ExecutionError) as caught:
            await it.sandbox.arm(it.launch)
        assert caught.value.kind is FailureKind.AGENT_RESTARTED
        await it.sandbox.start()
        assert await it.end() == Exit(code=0)
        assert it.printed() == [b"ran"]


async def test_what_was_only_prepared_is_removed(place: DockerPlace, tmp_path: Path) -> None:
    assignment = assigned(script("true"), network=Network.BRIDGE)
    await begin(place, tmp_path, assignment)
    assert len(await place.left(assignment.execution)) == 1
    async with place.runtime() as runtime:
        assert await runtime.recover(tmp_path / "executions") == []
    assert await place.left(assignment.execution) == []


async def test_an_execution_without_its_directory_is_removed(place: DockerPlace, tmp_path: Path) -> None:
    assignment = assigned(script("sleep 1000"))
    await begin(place, tmp_path, assignment, "arm", "start")
    async with place.runtime() as runtime:
        assert await runtime.recover(tmp_path / "other executions") == []
    assert await place.left(assignment.execution) == []


async def test_who_waits_for_the_exit_of_what_is_removed_is_told(place: DockerPlace, tmp_path: Path) -> None:
    assignment = assigned(script(WAITS))
    await begin(place, tmp_path, assignment, "arm", "start")
    async with recovered(place, tmp_path, assignment) as (it, _), asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(it.sandbox.exited(), name="waiting")
        await it.says(b"ready")
        await it.sandbox.remove()
        assert await waiting == Exit(code=137)
        assert await it.sandbox.exited() == Exit(code=137)


async def test_a_container_that_somebody_else_removed_is_not_the_users_fault(
    place: DockerPlace, tmp_path: Path
) -> None:
    assignment = assigned(script(WAITS))
    await begin(place, tmp_path, assignment, "arm", "start")
    async with recovered(place, tmp_path, assignment) as (it, _):
        await it.says(b"ready")
        request(place.socket, "DELETE", f"/containers/muster-{assignment.execution}?force=1")
        failure = await failure_of(it)
        assert failure.kind is FailureKind.RUNTIME
        assert "its container was removed by somebody else" in str(failure)


async def test_containers_of_others_are_left_alone(place: DockerPlace, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    theirs = DockerPlace(tmp_path / "theirs", place.socket)
    assignment = assigned(script(WAITS))
    await begin(theirs, tmp_path, assignment, "arm", "start")
    try:
        async with place.runtime() as runtime:
            assert await runtime.recover(tmp_path / "executions") == []
        assert len(await theirs.left(assignment.execution)) == 1
    finally:
        async with theirs.runtime() as runtime:
            assert await runtime.recover(tmp_path / "no executions") == []


async def test_a_name_that_somebody_else_has_is_not_taken_from_them(place: DockerPlace, tmp_path: Path) -> None:
    assignment = assigned(script("true"))
    name = f"muster-{assignment.execution}"
    body = json.dumps({"Image": IMAGE, "Cmd": ["true"]}).encode()
    request(place.socket, "POST", f"/containers/create?name={name}", body, headers={"Content-Type": "application/json"})
    try:
        with pytest.raises(ExecutionError, match=f"a container {name} that is not this agent's"):
            await begin(place, tmp_path, assignment, "arm")
    finally:
        request(place.socket, "DELETE", f"/containers/{name}")  # fails if it is gone


async def test_an_exit_code_that_looks_made_up_is_believed_where_the_engine_saw_the_end(
    place: DockerPlace, tmp_path: Path
) -> None:
    assignment = assigned(script("exit 255"))
    await begin(place, tmp_path, assignment, "arm", "start")
    async with recovered(place, tmp_path, assignment) as (it, _):
        assert await it.end() == Exit(code=255)
