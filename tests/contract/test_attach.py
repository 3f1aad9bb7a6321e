"""Attaching to executions of every runtime while they run: nothing of it is there before, and nothing is left of it."""

import asyncio
import io
import os
import signal
import tarfile
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from agent.attach.companion import CommandRefusedError, CompanionAwayError
from agent.attach.door import ExecutionDoor
from agent.attach.relayed.attachments import NotAttachableError
from agent.attach.ticket import made_ticket
from agent.core.door.packets import CommandWanted, GangExit, GangOutput
from agent.executions.layout import ExecutionDirectory
from agent.logs.spool import LogSpool
from agent.loop.doors import with_door
from agent.runtimes.kernel.pids import process, stat
from agent.secrets.directories import NoMemoryDirectoryError, SecretDirectories, memory_directory
from muster.domain.gangs.log import parse_records
from muster.domain.jobs.failure import ExecutionError, Exit
from muster.domain.jobs.job import Role
from tests.contract.attached import Attachable, attachable, environment, pid_of, surroundings
from tests.contract.docker_place import DockerPlace
from tests.contract.lone_loop import NoGangCommands
from tests.contract.runtime_places import PLACES, place_of
from tests.contract.runtimes import (
    GRACE,
    Place,
    ProcessPlace,
    Trial,
    assignment_for,
    directory_for,
    ignored,
    launch_for,
    running,
    shell,
    trial,
)
from tests.contract.secret_places import TOKEN, ContainersWithSecrets, ProcessesWithSecrets, with_secrets
from tests.contract.survivors import over
from tests.docker_daemon import request

LIMIT = 60.0
STAYS = Role(command=shell("echo $$; while :; do sleep 1000; done"), env={"GREETING": "good morning"})
BESIDE = shell("echo $$; while :; do sleep 1000; done")
ENDS_WHEN_ASKED = "trap 'kill $!; exit 3' TERM; sleep 1000 & echo $$; wait"
LISTENS_TO_NOBODY = "trap '' HUP TERM INT; echo on; while :; do sleep 1000; done"
BARE = "muster-test/bare:1"
"""An image in which there is one static program, /sleep, and nothing else."""


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return place_of(request, tmp_path)


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Where other users get to as well; pytest's own is closed to them."""
    with TemporaryDirectory(dir="/var/tmp", prefix="muster-test-") as directory:
        Path(directory).chmod(0o711)
        yield Path(directory)


@pytest.fixture
def directories(tmp_path: Path) -> Iterator[SecretDirectories]:
    try:
        root = memory_directory(None, os.environ) / tmp_path.name
    except NoMemoryDirectoryError as error:
        pytest.skip(str(error))
    yield SecretDirectories(root)
    if root.exists():
        root.rmdir()


@pytest.fixture(params=["process", pytest.param("docker", marks=pytest.mark.docker)])
def secretive(request: pytest.FixtureRequest, tmp_path: Path, directories: SecretDirectories) -> Place:
    if request.param == "docker":
        return ContainersWithSecrets(tmp_path, request.getfixturevalue("docker_socket"), directories)
    return ProcessesWithSecrets(tmp_path, directories)


@asynccontextmanager
async def attached(place: Place, directory: Path, role: Role) -> AsyncIterator[Attachable]:
    """An execution that runs, with the doors of its agent; at the end nothing of it may be left."""
    async with asyncio.timeout(LIMIT), trial(place, directory, role) as it:
        await it.release()
        if role is STAYS:
            await first_line(it)
        async with attachable(it) as found:
            yield found


async def first_line(it: Trial) -> bytes:
    """The first line that user code prints."""
    while not (told := it.printed()):
        it.spool.grew.clear()
        await it.spool.grew.wait()
    return told[0]


async def compared(it: Attachable, *variables: bytes) -> None:
    """Have a command run beside user code, and compare them; both have these variables."""
    command = await (await it.companion()).run(CommandWanted(number=0, words=BESIDE))
    told = await command.read()
    assert isinstance(told, GangOutput)
    program, beside = (pid_of(it.execution, each) for each in (await first_line(it.trial), told.data.strip()))
    assert surroundings(beside) == surroundings(program)
    assert set(variables) <= set(environment(beside))
    command.close()


async def test_a_command_finds_all_that_user_code_found(place: Place, tmp_path: Path) -> None:
    async with attached(place, tmp_path, STAYS) as it:
        await compared(it, b"GREETING=good morning")


async def test_a_command_finds_the_secrets_of_user_code(secretive: Place, tmp_path: Path) -> None:
    async with asyncio.timeout(LIMIT), with_secrets(secretive, tmp_path, STAYS) as it:
        await it.release()
        await first_line(it)
        async with attachable(it) as found:
            await compared(found, b"TOKEN=" + TOKEN)


async def test_an_execution_to_which_nobody_attaches_has_nothing_of_it(place: Place, tmp_path: Path) -> None:
    async with attached(place, tmp_path, STAYS) as it:
        names = {path.name for path in it.trial.directory.path.rglob("*")}
        assert names & {"run", "door", "bin", "muster-inside", "ticket", "attach-ticket", "call", "answer"} == set()
        assert it.companions() == []
        await it.companion()
        assert {"call", "answer"} & {path.name for path in it.trial.directory.path.iterdir()} == set()


async def test_all_who_attach_share_a_companion(place: Place, tmp_path: Path) -> None:
    async with attached(place, tmp_path, STAYS) as it:
        async with asyncio.TaskGroup() as tasks:
            asking = [tasks.create_task(it.companion()) for _ in range(8)]
        assert len({id(each.result()) for each in asking}) == 1
        [pid] = it.companions()
        assert await it.printed("echo", "on") == (b"on\n", 0)
        assert it.companions() == [pid]


async def test_a_companion_that_was_killed_is_followed_by_another(place: Place, tmp_path: Path) -> None:
    async with attached(place, tmp_path, STAYS) as it:
        companion = await it.companion()
        [first] = it.companions()
        command = await companion.run(CommandWanted(number=0, words=BESIDE))
        assert isinstance(await command.read(), GangOutput)
        os.kill(first, signal.SIGKILL)
        assert await command.read() == GangExit(code=255), "nobody can tell how it ends any more"
        command.close()
        assert await it.printed(*shell("exit 7")) == (b"", 7)
        [second] = it.companions()
        assert second != first


async def test_what_was_started_by_attaching_ends_with_user_code(place: Place, tmp_path: Path) -> None:
    async with attached(place, tmp_path, Role(command=shell(ENDS_WHEN_ASKED))) as it:
        told = await first_line(it.trial)
        command = await (await it.companion()).run(CommandWanted(number=0, words=shell(LISTENS_TO_NOBODY)))
        assert await command.read() == GangOutput(data=b"on\n")
        await it.printed("kill", "-TERM", told.decode())  # whose own end may come too late to be told
        assert await it.trial.end() == Exit(code=3)
        assert isinstance(await command.read(), GangExit)
        command.close()
        await it.trial.sandbox.vacate()
        assert running(it.execution) == []
        records = parse_records(it.trial.spool.read(0, it.trial.spool.size))
        assert [each.text for each in records if each.marker] == [], "user code has left nothing running"


async def test_a_stop_does_not_wait_for_what_was_started_by_attaching(place: Place, tmp_path: Path) -> None:
    async with attached(place, tmp_path, Role(command=shell(ENDS_WHEN_ASKED))) as it:
        await first_line(it.trial)
        command = await (await it.companion()).run(CommandWanted(number=0, words=shell(LISTENS_TO_NOBODY)))
        assert await command.read() == GangOutput(data=b"on\n")
        async with asyncio.timeout(GRACE.total_seconds() / 2):
            await it.trial.sandbox.stop(GRACE)
            await it.trial.end()
        command.close()
        assert running(it.execution) == []


async def test_what_has_ended_takes_no_companion(place: Place, tmp_path: Path) -> None:
    async with attached(place, tmp_path, Role(command=shell("exit 0"))) as it:
        await it.trial.end()
        with pytest.raises(ExecutionError):
            await it.trial.sandbox.attach("7" * 32)
        with pytest.raises(NotAttachableError, match="has ended"):
            await it.companion()
        assert not it.trial.directory.run.exists()


async def test_what_is_not_on_the_node_takes_no_companion(place: Place, tmp_path: Path) -> None:
    async with attached(place, tmp_path, STAYS) as it:
        it.live.started = False
        with pytest.raises(NotAttachableError, match="does not run on this node"):
            await it.companion()


async def test_whoever_waits_for_a_companion_hears_of_the_end(place: Place, tmp_path: Path) -> None:
    async with attached(place, tmp_path, STAYS) as it:
        companion = await it.companion()
        it.live.user_code_ended()
        await it.trial.sandbox.stop(timedelta(0))
        await it.trial.end()
        while companion.present:  # noqa: ASYNC110 - the line is closed, which the loop is about to see
            await asyncio.sleep(0)
        with pytest.raises(CompanionAwayError, match="has ended"):
            await companion.run(CommandWanted(number=0, words=("true",)))


async def test_with_gang_commands_those_who_attach_use_the_companion_that_is_there(
    place: Place, tmp_path: Path
) -> None:
    async with asyncio.timeout(LIMIT), trial(place, tmp_path, STAYS) as it:
        ticket = made_ticket(it.directory, gang_commands=True)
        it.launch = with_door(it.launch, ExecutionDoor(it.directory, ticket, NoGangCommands()))
        await it.release()
        await first_line(it)
        async with attachable(it) as found:
            await found.companion()
            [pid] = found.companions()
            os.kill(pid, signal.SIGKILL)
            await over(process(pid))
            assert await found.printed("echo", "on") == (b"on\n", 0)
            assert len(found.companions()) == 1
            await it.sandbox.stop(timedelta(0))


async def test_user_code_runs_no_commands_elsewhere_through_a_door_for_those_who_attach(
    place: Place, tmp_path: Path
) -> None:
    async with attached(place, tmp_path, STAYS) as it:
        await it.companion()
        programs = it.trial.directory.programs
        (programs / "muster-exec").hardlink_to(programs / "muster-inside")
        config = place.config_directory(it.trial.directory)
        call = f"MUSTER_DOOR={config}/run/door {config}/bin/muster-exec 0 true 2>&1"
        printed, code = await it.printed(*shell(call))
        assert b"has not `gang_commands: true`" in printed
        assert code == 255


@asynccontextmanager
async def begun(place: Place, directory: Path) -> AsyncIterator[tuple[Trial, Path]]:
    """An execution that an agent has started, which then lets go of it."""
    assignment = assignment_for(replace(STAYS, image=place.image))
    own = directory_for(directory, assignment.execution)
    async with place.runtime() as runtime:
        with closing(LogSpool(own.log)) as spool:
            sandbox = await runtime.prepare(assignment, own, spool, (), ignored)
            it = Trial(sandbox, spool, own, launch_for(assignment))
            await it.release()
            await first_line(it)
            yield it, own.path.parent


@asynccontextmanager
async def adopted(place: Place, executions: Path) -> AsyncIterator[Attachable]:
    """The only execution that the next agent finds; at the end nothing of it may be left."""
    with ExitStack() as after_the_runtime:
        async with place.runtime() as runtime:
            [(sandbox, spool, started)] = await runtime.recover(executions)
            after_the_runtime.callback(spool.close)
            assert started
            own = ExecutionDirectory(executions, sandbox.execution)
            it = Trial(sandbox, spool, own, launch_for(assignment_for(STAYS)))
            try:
                async with attachable(it) as found:
                    yield found
            finally:
                await sandbox.remove()
    assert running(sandbox.execution) == []


async def test_what_an_earlier_agent_started_can_be_attached_to(place: Place, tmp_path: Path) -> None:
    async with asyncio.timeout(LIMIT):
        async with begun(place, tmp_path) as (_, executions):
            pass
        async with adopted(place, executions) as it:
            await compared(it)


async def test_the_companion_of_an_earlier_agent_is_used_and_followed_when_it_is_killed(
    place: Place, tmp_path: Path
) -> None:
    async with asyncio.timeout(LIMIT):
        async with begun(place, tmp_path) as (trial_, executions), attachable(trial_) as first:
            await first.companion()
            [pid] = first.companions()
        async with adopted(place, executions) as it:
            assert await it.printed("echo", "on") == (b"on\n", 0)
            assert it.companions() == [pid]
        async with begun(place, tmp_path / "again") as (trial_, executions), attachable(trial_) as first:
            await first.companion()
            [pid] = first.companions()
        companion = process(pid)
        companion.kill()
        await over(companion)
        async with adopted(place, executions) as it:
            assert await it.printed("echo", "on") == (b"on\n", 0)
            assert it.companions() != [pid]


@pytest.mark.docker
async def test_an_image_needs_nothing(docker_socket: Path, tmp_path: Path) -> None:
    program = io.BytesIO()
    with tarfile.open(fileobj=program, mode="w") as archive:
        archive.add("/bin/busybox", "sleep")
    headers = {"Content-Type": "application/x-tar"}
    image = f"/images/create?fromSrc=-&repo={BARE.replace('/', '%2F').partition(':')[0]}&tag=1"
    request(docker_socket, "POST", image, program.getvalue(), headers)
    place = DockerPlace(tmp_path, docker_socket)
    place.image = BARE
    async with attached(place, tmp_path, Role(command=("/sleep", "1234"))) as it:
        assert await it.printed("/sleep", "0") == (b"", 0)
        with pytest.raises(CommandRefusedError, match="sh: not found") as refused:
            await it.printed("sh")
        assert refused.value.code == 127


async def test_a_process_without_its_supervisor_takes_no_companion(tmp_path: Path) -> None:
    async with attached(ProcessPlace(tmp_path), tmp_path, STAYS) as it:
        program = process(pid_of(it.execution, await first_line(it.trial)))
        found = stat(program.pid)
        assert found is not None
        supervisor = process(found.parent)
        supervisor.kill()
        await over(supervisor)
        with pytest.raises(ExecutionError, match="cannot be started"):
            await it.trial.sandbox.attach("7" * 32)
