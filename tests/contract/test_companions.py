"""The companion of every runtime: commands that come through the door run as user code does, and end with it."""

import asyncio
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from agent.attach.door import ExecutionDoor
from agent.attach.ticket import kept_ticket, made_ticket
from agent.core.door.names import CALLERS
from agent.core.door.packets import CommandWanted, GangExit, GangOutput
from agent.core.launching.launch import CONTAINER_RUN
from agent.logs.spool import LogSpool
from agent.loop.doors import with_door
from muster.domain.gangs.log import parse_records
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.job import Role, RuntimeKind
from tests.contract.lone_loop import NoGangCommands
from tests.contract.runtime_places import PLACES, place_of
from tests.contract.runtimes import (
    GRACE,
    Place,
    Trial,
    assignment_for,
    directory_for,
    ignored,
    launch_for,
    running,
    shell,
)

LIMIT = 60.0
INIT = struct.pack(">IBI", 5, 1, 3)
REAL_PATH, NAME = 16, 104
"""A question of SFTP, and its answer."""
ABOUT_ME = "id -u; id -g; pwd; echo $GREETING; grep -c . /proc/self/cgroup; grep CapEff /proc/self/status"
STAYS = Role(command=shell(f"{ABOUT_ME}; echo up; while :; do sleep 1; done"), env={"GREETING": "good morning"})


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return place_of(request, tmp_path)


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Where other users get to as well; pytest's own is closed to them."""
    with TemporaryDirectory(dir="/var/tmp", prefix="muster-test-") as directory:
        Path(directory).chmod(0o711)
        yield Path(directory)


@asynccontextmanager
async def served(door: ExecutionDoor) -> AsyncIterator[ExecutionDoor]:
    door.open()
    serving = asyncio.create_task(door.serve())
    try:
        yield door
    finally:
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving
        door.close()


@asynccontextmanager
async def doored(place: Place, directory: Path, role: Role) -> AsyncIterator[tuple[Trial, ExecutionDoor]]:
    """A prepared execution with a door that nobody serves yet; at the end nothing of it may be left."""
    assignment = replace(assignment_for(replace(role, image=place.image)), gang_commands=True)
    own = directory_for(directory, assignment.execution)
    door = ExecutionDoor(own, made_ticket(own, gang_commands=True), NoGangCommands())
    async with asyncio.timeout(LIMIT), place.runtime() as runtime:
        with closing(LogSpool(own.log)) as spool:
            sandbox = await runtime.prepare(assignment, own, spool, (), ignored)
            container = role_runtime(place) is RuntimeKind.DOCKER
            env = {"MUSTER_DOOR": f"{CONTAINER_RUN}/door" if container else str(own.door)}
            launch = launch_for(assignment)
            launch = with_door(replace(launch, env={**launch.env, **env}), door)
            try:
                yield Trial(sandbox, spool, own, launch), door
            finally:
                await sandbox.remove()
        assert running(assignment.execution) == []
        assert await place.left(assignment.execution) == []


def role_runtime(place: Place) -> RuntimeKind:
    return RuntimeKind.PROCESS if place.image is None else RuntimeKind.DOCKER


async def printed(door: ExecutionDoor, *words: str) -> list[bytes]:
    """The lines that a command prints in the execution behind a door."""
    command = await door.companion.run(CommandWanted(number=0, words=words))
    output = b""
    try:
        while not isinstance(piece := await command.read(), GangExit):
            output += piece.data if isinstance(piece, GangOutput) else b""
        return output.splitlines()
    finally:
        command.close()


async def test_a_command_runs_as_user_code_does(place: Place, tmp_path: Path) -> None:
    async with doored(place, tmp_path, STAYS) as (trial, door), served(door):
        await trial.release()
        await trial.says(b"up")
        assert [*await printed(door, *shell(ABOUT_ME)), b"up"] == trial.printed()


async def test_a_command_finds_the_programs_for_others_first_in_path(place: Place, tmp_path: Path) -> None:
    async with doored(place, tmp_path, STAYS) as (trial, door), served(door):
        await trial.release()
        programs = f"{place.config_directory(trial.directory)}/bin"
        lines = await printed(
            door, *shell(f"for name in {' '.join(CALLERS)}; do command -v $name; done; ssh somebody true 2>&1; echo $?")
        )
        refusal = f"ssh: somebody is no member of the attempt of {trial.sandbox.execution}"
        found = [f"{programs}/{name}" for name in CALLERS]
        assert [line.decode() for line in lines] == [*found, refusal, "255"]


async def test_a_shell_has_a_terminal_of_its_own_and_files_are_those_that_user_code_sees(
    place: Place, tmp_path: Path
) -> None:
    async with doored(place, tmp_path, STAYS) as (trial, door), served(door):
        await trial.release()
        await trial.says(b"up")
        wanted = CommandWanted(number=0, words=(), shell=True, terminal=True, rows=33, columns=111, env=("PS1=$ ",))
        shell_there = await door.companion.run(wanted)
        await shell_there.write(b"stty size; pwd; exit 5\n")
        shown = b""
        while not isinstance(piece := await shell_there.read(), GangExit):
            shown += piece.data
        shell_there.close()
        workdir = trial.printed()[2]
        assert b"33 111\r\n" + workdir + b"\r\n" in shown
        assert piece == GangExit(code=5)
        with await door.companion.files() as line:
            loop, answers = asyncio.get_running_loop(), b""
            await loop.sock_sendall(line, INIT + struct.pack(">IBII", 10, REAL_PATH, 7, 1) + b".")
            named = struct.pack(">BIII", NAME, 7, 1, len(workdir)) + workdir
            while named not in answers:
                answers += await loop.sock_recv(line, 65536)
        await trial.sandbox.stop(timedelta(0))


async def test_the_end_does_not_wait_for_the_companion(place: Place, tmp_path: Path) -> None:
    async with doored(place, tmp_path, Role(command=shell("exit 3"))) as (trial, door), served(door):
        assert await trial.run() == Exit(code=3)
        assert [each.text for each in parse_records(trial.spool.read(0, trial.spool.size)) if each.marker] == []


async def test_commands_end_with_user_code(place: Place, tmp_path: Path) -> None:
    async with doored(place, tmp_path, STAYS) as (trial, door), served(door):
        await trial.release()
        command = await door.companion.run(CommandWanted(number=0, words=shell("echo on; while :; do sleep 1; done")))
        assert await command.read() == GangOutput(data=b"on\n")
        await trial.sandbox.stop(timedelta(0))
        await trial.end()
        assert isinstance(await command.read(), GangExit)
        command.close()


async def test_the_companion_serves_the_next_agent(place: Place, tmp_path: Path) -> None:
    async with doored(place, tmp_path, STAYS) as (trial, door):
        async with served(door):
            await trial.release()
            assert await printed(door, "echo", "once") == [b"once"]
        later = ExecutionDoor(trial.directory, kept_ticket(trial.directory, gang_commands=True), NoGangCommands())
        async with served(later):
            assert await printed(later, "echo", "again") == [b"again"]
        await trial.sandbox.stop(GRACE)


def test_only_the_agent_may_read_the_ticket(tmp_path: Path) -> None:
    own = directory_for(tmp_path, ExecutionId("abc-1-0"))
    ticket = made_ticket(own, gang_commands=True)
    assert kept_ticket(own, gang_commands=True) == ticket
    assert (own.path / "ticket").stat().st_mode & 0o777 == 0o600


def test_an_execution_without_a_door_has_no_ticket(tmp_path: Path) -> None:
    own = directory_for(tmp_path, ExecutionId("abc-1-0"))
    assert kept_ticket(own, gang_commands=True) == kept_ticket(own, gang_commands=False) == ""
