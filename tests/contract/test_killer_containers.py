"""The killer kills real containers that are overdue, whatever became of the agent and of the engine."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent.core.containers.spec import IDENTITY_LABEL, ContainerPart, container_name
from agent.core.deadlines import ExecutionDeadline, Notes, written
from agent.executions.ports import PortLedger
from agent.fencing.deadlines import why_fenced
from agent.fencing.kill import ENGINE_LIMIT
from agent.fencing.killer import Killer
from agent.fencing.killer_program import MESSAGE
from agent.logs.spool import LogSpool
from agent.runtimes.docker.runtime import DockerRuntime
from agent.runtimes.kernel.pids import boot_id
from muster.domain.gangs.plan import Report, Stage
from muster.domain.ids import ExecutionId, NodeId
from muster.domain.jobs.failure import FailureKind
from muster.domain.jobs.job import RuntimeKind
from tests.contract.docker_place import DockerPlace
from tests.contract.docker_trials import assigned, script
from tests.contract.killers import AGENT, LIMIT, ONCE_IT_IS_GONE, ROOT, SOON, gone, killers, now
from tests.contract.lone_loop import LoneLoop
from tests.contract.runtimes import directory_for, ignored, launch_for, running
from tests.docker_daemon import (
    IMAGE,
    PrivateDaemon,
    containers,
    daemon,
    import_busybox,
    inspected,
    request,
    why_no_daemon,
)

pytestmark = pytest.mark.docker

STUBBORN = "trap '' TERM; sleep 1000 & sleep 1000 & while true; do wait; done"
"""User code that does not stop by itself, with children."""
NODE = NodeId("a")


@pytest.fixture
def own_daemon() -> Iterator[PrivateDaemon]:
    """A daemon that the test may kill; what it runs goes on."""
    reason = why_no_daemon()
    if reason:
        pytest.skip(reason)
    with daemon("--live-restore") as private:
        import_busybox(private.socket)
        yield private


@pytest.fixture
def place(tmp_path: Path, docker_socket: Path) -> Iterator[DockerPlace]:
    place = DockerPlace(tmp_path, docker_socket)
    yield place
    for left in containers(docker_socket, f"{IDENTITY_LABEL}={place.identity}"):
        request(docker_socket, "DELETE", f"/containers/{left['Id']}?force=1&v=1")


@dataclass(frozen=True, kw_only=True)
class Overdue:
    """An execution that runs in a container, and soon may not any more."""

    execution: ExecutionId
    directory: Path
    socket: Path

    @property
    def container(self) -> str:
        return container_name(self.execution, ContainerPart.USER)

    def deadline(self, dead_by: float) -> ExecutionDeadline:
        return ExecutionDeadline(
            execution=self.execution,
            dead_by=dead_by,
            directory=str(self.directory),
            container=self.container,
            socket=str(self.socket),
        )

    def first_process(self) -> int:
        pid: int = inspected(self.socket, self.container)["State"]["Pid"]
        return pid


async def started(place: DockerPlace, directory: Path, text: str = STUBBORN) -> Overdue:
    """An execution that runs, and whose agent has gone without a word."""
    assignment = assigned(script(text))
    own = directory_for(directory, assignment.execution)
    with closing(LogSpool(own.log)) as spool:
        async with place.runtime() as runtime:
            sandbox = await runtime.prepare(assignment, own, spool, (), ignored)
            await sandbox.arm(launch_for(assignment))
            await sandbox.start()
    return Overdue(execution=assignment.execution, directory=own.path, socket=place.socket)


def leave_to_killer(state: Path, *deadlines: ExecutionDeadline) -> None:
    """An agent tells its killer, and is killed."""
    notes = Notes(boot=boot_id(), agent="a", deadlines=deadlines)
    agent = AGENT.format(root=str(ROOT), state=str(state))
    killed = subprocess.run([sys.executable, "-I", "-S", "-c", agent], input=written(notes), check=False, timeout=LIMIT)
    assert killed.returncode == -signal.SIGKILL


@pytest.fixture
def killer(tmp_path: Path) -> Iterator[Killer]:
    killer = Killer()
    killer.start()
    [pid] = killers(killer.name)
    yield killer
    killer.tell(tmp_path, Notes(boot=boot_id(), agent=killer.name))
    killer.close()
    gone(pid)


def away(private: PrivateDaemon) -> AbstractContextManager[None]:
    private.kill()
    return nullcontext()


@pytest.mark.parametrize("unwell", [away, PrivateDaemon.hanging], ids=["killed", "hanging"])
async def test_what_is_overdue_dies_though_agent_and_engine_are_gone(
    own_daemon: PrivateDaemon, tmp_path: Path, unwell: Callable[[PrivateDaemon], AbstractContextManager[None]]
) -> None:
    place = DockerPlace(tmp_path, own_daemon.socket)
    first, second = [await started(place, tmp_path) for _ in range(2)]
    processes = [pid for each in (first, second) for pid in (each.first_process(), *running(each.execution))]
    with unwell(own_daemon):
        dead_by = now() + ONCE_IT_IS_GONE
        leave_to_killer(tmp_path, first.deadline(dead_by), second.deadline(dead_by))
        told = now()
        for pid in processes:
            gone(pid)
        assert now() < max(told, dead_by) + ENGINE_LIMIT, "the engine was waited for"
    assert [why_fenced(each.directory) for each in (first, second)] == [MESSAGE, MESSAGE]


async def test_what_is_overdue_dies_with_the_agent_gone_and_the_next_one_says_why(
    place: DockerPlace, tmp_path: Path
) -> None:
    overdue = await started(place, tmp_path)
    pid, dead_by = overdue.first_process(), now() + ONCE_IT_IS_GONE
    leave_to_killer(tmp_path, overdue.deadline(dead_by))
    gone(pid)
    assert now() >= dead_by
    request(place.socket, "POST", f"/containers/{overdue.container}/wait")
    report = await reported_by_the_next_agent(place, tmp_path)
    assert report.stage is Stage.EXITED
    assert report.failure is not None
    assert (report.failure.kind, report.failure.message) == (FailureKind.NODE_LOST, MESSAGE)


async def reported_by_the_next_agent(place: DockerPlace, directory: Path) -> Report:
    """What it tells of the only execution, once that has ended."""
    runtime = DockerRuntime(place.socket, place.identity)
    ports = PortLedger(30_160, 30_169)
    lone = LoneLoop(directory, directory / "executions", {RuntimeKind.DOCKER: runtime}, ports, "127.0.0.1")
    await lone.loop.recover()
    try:
        async with asyncio.TaskGroup() as tasks:
            working = tasks.create_task(lone.loop.run(), name="loop")
            while (report := await lone.told()).failure is None:
                pass
            working.cancel()
    finally:
        await lone.loop.shut_down(stop=True)
        lone.loop.close()
        await runtime.close()
    return report


async def test_what_ended_in_time_is_not_said_to_be_killed(place: DockerPlace, tmp_path: Path, killer: Killer) -> None:
    ended, overdue = await started(place, tmp_path, "exit 3"), await started(place, tmp_path)
    request(place.socket, "POST", f"/containers/{ended.container}/wait")
    late = now()
    tell(killer, tmp_path, ended.deadline(late), overdue.deadline(late + SOON))
    gone(overdue.first_process())
    assert (why_fenced(ended.directory), why_fenced(overdue.directory)) == ("", MESSAGE)


async def test_a_container_of_somebody_else_is_left_alone_also_under_the_same_name(
    place: DockerPlace, tmp_path: Path, killer: Killer
) -> None:
    overdue, spared = await started(place, tmp_path), await started(place, tmp_path)
    own = directory_for(tmp_path, ExecutionId("theirs-1-0")).path
    theirs = Overdue(execution=ExecutionId("theirs-1-0"), directory=own, socket=place.socket)
    body = json.dumps({"Image": IMAGE, "Cmd": ["sleep", "1000"]}).encode()
    json_type = {"Content-Type": "application/json"}
    request(place.socket, "POST", f"/containers/create?name={theirs.container}", body, json_type)
    try:
        request(place.socket, "POST", f"/containers/{theirs.container}/start")
        late = now()
        tell(killer, tmp_path, theirs.deadline(late), overdue.deadline(late + SOON), spared.deadline(late + 1000))
        gone(overdue.first_process())
        left = [inspected(place.socket, each.container)["State"]["Running"] for each in (theirs, spared)]
        assert (left, why_fenced(theirs.directory)) == ([True, True], "")
    finally:
        request(place.socket, "DELETE", f"/containers/{theirs.container}?force=1")


async def test_a_container_of_which_the_disk_tells_nothing_is_killed_by_the_engine(
    place: DockerPlace, tmp_path: Path, killer: Killer
) -> None:
    overdue = await started(place, tmp_path)
    (overdue.directory / "started").unlink()
    pid = overdue.first_process()
    tell(killer, tmp_path, overdue.deadline(now()))
    gone(pid)


def tell(killer: Killer, state: Path, *deadlines: ExecutionDeadline) -> None:
    killer.tell(state, Notes(boot=boot_id(), agent=killer.name, deadlines=deadlines))
