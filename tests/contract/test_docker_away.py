"""The Docker runtime while the engine or containerd is away."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, closing
from pathlib import Path

import pytest

from agent.core.containers.spec import EXECUTION_LABEL
from agent.executions.layout import ExecutionDirectory
from agent.logs.spool import LogSpool
from agent.runtimes.docker.ends import MADE_UP_EXIT_CODES
from muster.domain.gangs.log import Stream, parse_records
from muster.domain.gangs.plan import Assignment
from muster.domain.jobs.failure import Exit, FailureKind
from tests.contract.docker_place import DockerPlace
from tests.contract.docker_restarts import WAITS, begin, failure_of, recovered
from tests.contract.docker_trials import assigned, script
from tests.contract.runtimes import Trial, directory_for, ignored, launch_for, running
from tests.docker_daemon import PrivateDaemon, containers, daemon, import_busybox, inspected, why_no_daemon

pytestmark = pytest.mark.docker

ANSWERS = (
    "echo ready; until [ -e /muster/outputs/asked ]; do sleep 0.02; done; echo asked; echo asked >&2; "
    "until [ -e /muster/outputs/go ]; do sleep 0.02; done; echo went; exit 5"
)


@pytest.fixture
def own_daemon(request: pytest.FixtureRequest) -> Iterator[PrivateDaemon]:
    """A daemon that the test may stop; parameters are its options."""
    reason = why_no_daemon()
    if reason:
        pytest.skip(reason)
    with daemon(*getattr(request, "param", ())) as private:
        import_busybox(private.socket)
        yield private


async def test_an_engine_that_takes_its_containers_along_is_not_the_users_fault(
    own_daemon: PrivateDaemon, tmp_path: Path
) -> None:
    place = DockerPlace(tmp_path, own_daemon.socket)
    assignment = assigned(script(WAITS))
    await begin(place, tmp_path, assignment, "arm", "start")
    async with recovered(place, tmp_path, assignment) as (it, _), asyncio.TaskGroup() as tasks:
        await it.says(b"ready")
        waiting = tasks.create_task(failure_of(it), name="waiting")
        await asyncio.to_thread(own_daemon.stop)
        await asyncio.to_thread(own_daemon.start)
        failure = await waiting
        assert failure.kind is FailureKind.RUNTIME
        assert "Docker was stopped on the node" in str(failure)
        assert "exit code 3" in str(failure)
        assert str(await failure_of(it)) == str(failure)


@pytest.mark.parametrize("own_daemon", [("--live-restore",)], indirect=True)
async def test_with_live_restore_nothing_is_lost(own_daemon: PrivateDaemon, tmp_path: Path) -> None:
    place = DockerPlace(tmp_path, own_daemon.socket)
    assignment = assigned(script(WAITS))
    await begin(place, tmp_path, assignment, "arm", "start")
    async with recovered(place, tmp_path, assignment) as (it, _), asyncio.TaskGroup() as tasks:
        await it.says(b"ready")
        waiting = tasks.create_task(it.end(), name="waiting")
        await asyncio.to_thread(own_daemon.stop)
        await asyncio.to_thread(own_daemon.start)
        assert not waiting.done()
        (it.directory.outputs / "go").touch()
        assert await waiting == Exit(code=5)
        assert it.printed() == [b"ready", b"went"]


@pytest.mark.parametrize("own_daemon", [("--live-restore",)], indirect=True)
@pytest.mark.parametrize("ending", ["while it is away", "when it is back"])
async def test_an_agent_that_starts_while_the_engine_is_away_adopts_what_goes_on(
    own_daemon: PrivateDaemon, tmp_path: Path, ending: str
) -> None:
    place = DockerPlace(tmp_path, own_daemon.socket)
    assignment = assigned(script(ANSWERS))
    await begin(place, tmp_path, assignment, "arm", "start")
    await asyncio.to_thread(own_daemon.stop)
    async with recovered_without_engine(place, tmp_path, assignment) as it, asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(it.end(), name="waiting")
        if ending == "while it is away":
            (it.directory.outputs / "asked").touch()
            (it.directory.outputs / "go").touch()
            while running(assignment.execution):  # noqa: ASYNC110 (nobody tells)
                await asyncio.sleep(0.01)
        assert not waiting.done()
        await asyncio.to_thread(own_daemon.start)
        if ending == "when it is back":
            (it.directory.outputs / "asked").touch()
            for stream in Stream:  # each is followed by itself, and only now is it certain that it is
                await it.says(b"asked", stream)
            (it.directory.outputs / "go").touch()
        assert await waiting == Exit(code=5)
        marked = [record.text for record in parse_records(it.directory.log.read_bytes()) if record.marker]
        if ending == "while it is away":  # Docker loses what is printed then
            assert it.printed()[0] == b"ready"
            assert marked == [b"[muster] the last lines may be missing: Docker was away when user code ended"]
        else:
            assert (it.printed(), marked) == ([b"ready", b"asked", b"went"], [])


@pytest.mark.parametrize("own_daemon", [("--live-restore",)], indirect=True)
async def test_what_ends_just_before_the_engine_is_back_has_a_log_that_says_so(
    own_daemon: PrivateDaemon, tmp_path: Path
) -> None:
    place = DockerPlace(tmp_path, own_daemon.socket)
    assignment = assigned(script(WAITS))
    await begin(place, tmp_path, assignment, "arm", "start")
    async with recovered(place, tmp_path, assignment) as (it, _):
        await it.says(b"ready")
    await asyncio.to_thread(own_daemon.kill)
    (it.directory.outputs / "go").touch()
    while running(assignment.execution):  # noqa: ASYNC110 (nobody tells)
        await asyncio.sleep(0.001)
    await asyncio.to_thread(own_daemon.start)
    async with recovered(place, tmp_path, assignment) as (it, _):
        assert await it.end() == Exit(code=5)
        marked = [record.text for record in parse_records(it.directory.log.read_bytes()) if record.marker]
        assert marked == [b"[muster] the last lines may be missing: Docker was away when user code ended"]


@pytest.mark.parametrize("own_daemon", [("--live-restore",)], indirect=True)
async def test_an_exit_code_that_the_engine_makes_up_is_not_believed(own_daemon: PrivateDaemon, tmp_path: Path) -> None:
    place = DockerPlace(tmp_path, own_daemon.socket)
    assignment = assigned(script(WAITS))
    await begin(place, tmp_path, assignment, "arm", "start")
    async with recovered(place, tmp_path, assignment) as (it, _):
        await it.says(b"ready")
    await asyncio.to_thread(own_daemon.forget_containers)
    await asyncio.to_thread(own_daemon.start)
    async with recovered(place, tmp_path, assignment) as (it, _):
        failure = await failure_of(it)
        assert failure.kind is FailureKind.RUNTIME
        assert "Docker does not know how the execution ended" in str(failure)


@pytest.mark.parametrize("own_daemon", [("--live-restore",)], indirect=True)
async def test_a_failure_that_an_engine_lost_as_it_was_killed_is_not_told_as_a_success(
    own_daemon: PrivateDaemon, tmp_path: Path
) -> None:
    place = DockerPlace(tmp_path, own_daemon.socket)
    assignment = assigned(script(WAITS))
    await begin(place, tmp_path, assignment, "arm", "start")
    [container] = containers(own_daemon.socket, f"{EXECUTION_LABEL}={assignment.execution}")
    async with recovered(place, tmp_path, assignment) as (it, _), asyncio.TaskGroup() as tasks:
        await it.says(b"ready")
        waiting = tasks.create_task(failure_of(it), name="waiting")
        await asyncio.to_thread(own_daemon.kill)
        (it.directory.outputs / "go").touch()
        while running(assignment.execution):  # noqa: ASYNC110 (nobody tells)
            await asyncio.sleep(0.001)
        await asyncio.to_thread(own_daemon.lose_end, container["Id"])
        await asyncio.to_thread(own_daemon.start)
        failure = await waiting
        assert inspected(own_daemon.socket, container["Id"])["State"]["ExitCode"] in MADE_UP_EXIT_CODES
        assert failure.kind is FailureKind.RUNTIME
        assert "Docker does not know how the execution ended" in str(failure)


async def test_the_end_of_what_ends_while_containerd_is_away_is_told_as_far_as_anybody_knows_it(
    own_daemon: PrivateDaemon, tmp_path: Path
) -> None:
    watched, unwatched = (_directory_below(tmp_path, name) for name in ("watched", "unwatched"))
    assignment = assigned(script(WAITS))
    forgotten = assigned(script(WAITS))
    await begin(DockerPlace(watched, own_daemon.socket), watched, assignment, "arm", "start")
    await begin(DockerPlace(unwatched, own_daemon.socket), unwatched, forgotten, "arm", "start")
    async with (
        recovered(DockerPlace(watched, own_daemon.socket), watched, assignment) as (it, _),
        recovered(DockerPlace(unwatched, own_daemon.socket), unwatched, forgotten) as (other, _),
        asyncio.TaskGroup() as tasks,
    ):
        await it.says(b"ready")
        await other.says(b"ready")
        ending = tasks.create_task(it.end(), name="ending")
        failing = tasks.create_task(failure_of(other), name="failing")
        [container] = containers(own_daemon.socket, f"{EXECUTION_LABEL}={forgotten.execution}")
        own_daemon.kill_containerd()
        own_daemon.kill_watcher(container["Id"])
        for each in (it, other):
            (each.directory.outputs / "go").touch()
        while running(assignment.execution) or running(forgotten.execution):  # noqa: ASYNC110 (nobody tells)
            await asyncio.sleep(0.01)
        assert not ending.done()
        assert await ending == Exit(code=5)
        assert "Docker does not know how the execution ended" in str(await failing)


def _directory_below(directory: Path, name: str) -> Path:
    made = directory / name
    made.mkdir()
    return made


@asynccontextmanager
async def recovered_without_engine(place: DockerPlace, directory: Path, assignment: Assignment) -> AsyncIterator[Trial]:
    """The only execution that an agent goes on with that finds no engine when it starts."""
    with ExitStack() as after_the_runtime:
        async with place.runtime() as runtime:
            assert (await runtime.offer()).problem is not None
            [(sandbox, spool, started)] = await runtime.recover(directory / "executions")
            after_the_runtime.callback(spool.close)
            assert (sandbox.execution, started) == (assignment.execution, True)
            yield Trial(
                sandbox,
                spool,
                ExecutionDirectory(directory / "executions", assignment.execution),
                launch_for(assignment),
            )


@pytest.mark.parametrize("own_daemon", [("--live-restore",)], indirect=True)
async def test_what_was_about_to_start_when_engine_and_agent_went_never_ran(
    own_daemon: PrivateDaemon, tmp_path: Path
) -> None:
    place = DockerPlace(tmp_path, own_daemon.socket)
    assignment = assigned(script("echo ran"))
    own = directory_for(tmp_path, assignment.execution)
    with closing(LogSpool(own.log)) as spool:
        async with place.runtime() as runtime:
            sandbox = await runtime.prepare(assignment, own, spool, (), ignored)
            await sandbox.arm(launch_for(assignment))
            await asyncio.to_thread(own_daemon.stop)
            starting = asyncio.create_task(sandbox.start(), name="starting")
            while not (own.path / "started").exists():  # noqa: ASYNC110 (nobody tells)
                await asyncio.sleep(0.01)
            starting.cancel()
            await asyncio.wait([starting])
    async with recovered_without_engine(place, tmp_path, assignment) as it:
        await asyncio.to_thread(own_daemon.start)
        assert (await failure_of(it)).kind is FailureKind.AGENT_RESTARTED
        await it.sandbox.drained()
        await it.sandbox.remove()
    assert containers(own_daemon.socket, f"{EXECUTION_LABEL}={assignment.execution}") == []


async def test_calls_wait_for_an_engine_that_is_being_restarted(own_daemon: PrivateDaemon, tmp_path: Path) -> None:
    place = DockerPlace(tmp_path, own_daemon.socket)
    assignment = assigned(script("echo ran"))
    await begin(place, tmp_path, assignment, "arm")
    async with recovered(place, tmp_path, assignment) as (it, _):
        await asyncio.to_thread(own_daemon.stop)
        async with asyncio.TaskGroup() as tasks:
            starting = tasks.create_task(it.sandbox.start(), name="starting")
            await asyncio.to_thread(own_daemon.start)
            await starting
        assert await it.end() == Exit(code=0)
        assert it.printed() == [b"ran"]
