"""Interactive jobs in every runtime: without a command they wait, and their setup comes first."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from agent.attach.programs import bring_companion
from agent.core.door.names import INSIDE
from agent.core.launching.launch import CONTAINER_CONFIG, CONTAINER_OUTPUTS, launch
from agent.core.launching.main_program import SETUP_FAILED
from agent.core.launching.site import LaunchSite
from agent.executions.layout import ExecutionDirectory
from agent.logs.spool import LogSpool
from muster.domain.gangs.plan import LAUNCH_PROGRAMS, Assignment
from muster.domain.gangs.roster import MASTER_PORT_NAME, Member, PortLease, Roster
from muster.domain.ids import NodeId
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.interactive import Interactive
from muster.domain.jobs.job import Role
from tests.contract.runtime_places import PLACES, place_of
from tests.contract.runtimes import (
    GRACE,
    Place,
    Trial,
    assignment_for,
    directory_for,
    ignored,
    running,
    shell,
)

TOLD_TO_END = (Exit(code=0), Exit(code=143))
"""How a program that waits ends when it is told to; it may be told before it listens."""


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return place_of(request, tmp_path)


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Where other users get to as well; pytest's own is closed to them."""
    with TemporaryDirectory(dir="/var/tmp", prefix="muster-test-") as directory:
        Path(directory).chmod(0o711)
        yield Path(directory)


def roster_of(assignment: Assignment) -> Roster:
    """The roster of a job with one execution."""
    lease = PortLease(name=MASTER_PORT_NAME, host_port=29_500, container_port=29_500)
    member = Member(
        rank=0,
        execution=assignment.execution,
        role="worker",
        node=NodeId("a"),
        address="127.0.0.1",
        checked_in_at=datetime(2026, 11, 21, tzinfo=UTC),
        ports=(lease,),
    )
    return Roster.of(job=assignment.job, job_name="trial", attempt=1, network=assignment.network, members=(member,))


def site_of(place: Place, directory: ExecutionDirectory) -> LaunchSite:
    """The directories as user code sees them there."""
    if place.image is not None:
        inside = f"{CONTAINER_CONFIG}/{LAUNCH_PROGRAMS}/{INSIDE}"
        return LaunchSite(config=CONTAINER_CONFIG, outputs=CONTAINER_OUTPUTS, inside=inside)
    inside = str(directory.programs.absolute() / INSIDE)
    return LaunchSite(config=str(directory.config), outputs=str(directory.outputs), inside=inside)


@asynccontextmanager
async def interactive(place: Place, directory: Path, setup: str, *command: str) -> AsyncIterator[Trial]:
    """An execution of an interactive job, prepared; at the end it is removed, and nothing of it may be left."""
    async with place.runtime() as runtime:
        role = Role(image=place.image, command=command)
        assignment = replace(assignment_for(role), interactive=Interactive(setup=setup))
        own = directory_for(directory, assignment.execution)
        with closing(LogSpool(own.log)) as spool:
            sandbox = await runtime.prepare(assignment, own, spool, (), ignored)
            bring_companion(own)
            try:
                yield Trial(sandbox, spool, own, launch(assignment, roster_of(assignment), site_of(place, own)))
            finally:
                await sandbox.remove()
        assert running(assignment.execution) == []
        assert await place.left(assignment.execution) == []


async def test_without_a_command_it_waits_until_it_is_told_to_end(place: Place, tmp_path: Path) -> None:
    async with interactive(place, tmp_path, "echo ready; (sleep 600) &") as it:
        await it.release()
        await it.says(b"ready")
        await it.sandbox.stop(GRACE)
        assert await it.end() in TOLD_TO_END
        assert it.printed() == [b"ready"]


async def test_its_setup_may_be_missing(place: Place, tmp_path: Path) -> None:
    async with interactive(place, tmp_path, "") as it:
        await it.release()
        await it.sandbox.stop(GRACE)
        assert await it.end() in TOLD_TO_END


async def test_its_command_follows_the_setup_and_finds_what_that_left_running(place: Place, tmp_path: Path) -> None:
    setup = "mkfifo /tmp/$MUSTER_EXECUTION_ID; (echo served > /tmp/$MUSTER_EXECUTION_ID) & echo setup"
    main = "read line < /tmp/$MUSTER_EXECUTION_ID; rm /tmp/$MUSTER_EXECUTION_ID; echo $line; exit 7"
    async with interactive(place, tmp_path, setup, *shell(main)) as it:
        assert (await it.run(), it.printed()) == (Exit(code=7), [b"setup", b"served"])
        assert not (it.directory.outputs / SETUP_FAILED).exists()


async def test_a_setup_that_fails_ends_it_and_leaves_a_mark_for_the_agent(place: Place, tmp_path: Path) -> None:
    async with interactive(place, tmp_path, "exit 3", *shell("echo main")) as it:
        assert (await it.run(), it.printed()) == (Exit(code=3), [])
        assert (it.directory.outputs / SETUP_FAILED).read_text() == "3\n"


async def test_it_can_be_stopped_in_the_middle_of_its_setup(place: Place, tmp_path: Path) -> None:
    async with interactive(place, tmp_path, "echo begun; sleep 600") as it:
        await it.release()
        await it.says(b"begun")
        await it.sandbox.stop(GRACE)
        assert (await it.end()).code != 0
