"""Cgroups of plain processes, on whatever this machine has of them, and their place in line when memory is short."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from agent.core.deadlines import ExecutionDeadline
from agent.core.launching.job_user import NOBODY, JobUser
from agent.fencing.kill import kill
from agent.logs.spool import LogSpool
from agent.runtimes.kernel.cgroups import Cgroups, own_cgroups
from agent.runtimes.kernel.confinement import SCORE, members
from agent.runtimes.kernel.pids import stat
from agent.runtimes.kernel.rights import may_switch
from agent.runtimes.process.confines import noted_groups
from agent.runtimes.process.launcher import Launcher
from agent.runtimes.process.record import read_record
from agent.runtimes.process.runtime import ProcessRuntime
from agent.runtimes.process.spares import SpareSupervisors
from muster.domain.jobs.failure import ExecutionError, Exit
from muster.domain.jobs.job import Resources, Role, Security
from tests.contract.attached import attachable
from tests.contract.noted_cgroups import cgroups_of, make_below, of_each, still_there, weights
from tests.contract.runtimes import GRACE, Trial, assignment_for, directory_for, ignored, launch_for, shell
from tests.contract.survivors import over
from tests.contract.torchrun_like import BOMB

PROGRAM = Path(__file__).with_name("torchrun_like.py")
MEMORY = 64 << 20


@pytest.fixture
def cgroups(tmp_path: Path) -> Iterator[Cgroups]:
    """The cgroups of this machine."""
    name = tmp_path.name[-4:] + str(os.getpid())
    found = own_cgroups(name)
    if found.says == "no cgroups":
        pytest.skip("this machine has no cgroups that a test may make")
    yield found
    assert own_cgroups(name).strangers(()) == {}


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A directory that other users get to as well; pytest's own is closed to them."""
    with TemporaryDirectory(dir="/var/tmp", prefix="muster-test-") as directory:
        Path(directory).chmod(0o711)
        yield Path(directory)


def needs(cgroups: Cgroups, controller: str) -> None:
    if controller not in cgroups.limiting:
        pytest.skip(f"no cgroup of this machine limits {controller} for tests")


USERS = [
    pytest.param(None, id="own user"),
    pytest.param(
        NOBODY,
        id="other user",
        marks=pytest.mark.skipif(not may_switch(), reason="only an agent with root's rights may switch users"),
    ),
]


class Trials:
    """Executions of one node, one after the other."""

    def __init__(self, directory: Path, runtime: ProcessRuntime) -> None:
        self._directory = directory
        self._runtime = runtime
        self._open = ExitStack()
        self._made: list[Trial] = []

    async def next(self, role: Role) -> Trial:
        """Another execution, prepared."""
        assignment = assignment_for(role)
        own = directory_for(self._directory, assignment.execution)
        spool = self._open.enter_context(closing(LogSpool(own.log)))
        sandbox = await self._runtime.prepare(assignment, own, spool, (), ignored)
        self._made.append(Trial(sandbox, spool, own, launch_for(assignment)))
        return self._made[-1]

    async def close(self) -> None:
        """Remove them all."""
        with self._open:
            for each in self._made:
                await each.sandbox.remove()


@asynccontextmanager
async def several(
    directory: Path,
    cgroups: Cgroups | None,
    user: JobUser | None = None,
    spares: SpareSupervisors | None = None,
) -> AsyncIterator[Trials]:
    """A node for executions."""
    spares = spares or SpareSupervisors(Launcher(other_users=user is not None), cgroups, wanted=0)
    runtime = ProcessRuntime(spares=spares, job_user=user)
    trials = Trials(directory, runtime)
    try:
        yield trials
        await trials.close()
    finally:
        await runtime.close()


@asynccontextmanager
async def prepared(
    directory: Path,
    cgroups: Cgroups | None,
    role: Role,
    user: JobUser | None = None,
    spares: SpareSupervisors | None = None,
) -> AsyncIterator[Trial]:
    """An execution on a node of its own."""
    async with several(directory, cgroups, user, spares) as they:
        yield await they.next(role)


@pytest.mark.parametrize("user", USERS)
async def test_a_program_is_in_its_cgroups_from_its_start_and_its_supervisor_with_it(
    tmp_path: Path, cgroups: Cgroups, user: JobUser | None
) -> None:
    async with prepared(tmp_path, cgroups, Role(command=shell("sleep 1000 & echo $$; wait")), user) as it:
        await it.release()
        while not it.printed():
            it.spool.grew.clear()
            await it.spool.grew.wait()
        program = int(it.printed()[0])
        record = read_record(it.directory.path)
        assert record is not None
        assert record.groups == noted_groups(it.directory) != ()
        for group in record.groups:
            found = members(group)
            assert {program, record.supervisor.pid} < found
            assert len(found) == 3
        await it.sandbox.stop(GRACE)
        await it.sandbox.remove()
        assert noted_groups(it.directory) == ()
    assert still_there(record.groups) == []


async def test_a_spare_supervisor_waits_in_the_cgroups_that_its_program_gets(tmp_path: Path, cgroups: Cgroups) -> None:
    spares = SpareSupervisors(Launcher(), cgroups, wanted=1)
    spares.refill()
    [waiting] = spares.waiting
    groups = [Path(group) for group, _ in waiting.groups]
    assert groups
    role = Role(command=shell("cat /proc/self/cgroup"), resources=Resources(cpu_millis=100))
    async with prepared(tmp_path, cgroups, role, spares=spares) as it:
        assert noted_groups(it.directory) == tuple(map(str, groups))
        assert await it.run() == Exit(code=0)
        found = {line.rpartition(b"/")[2].decode() for line in it.printed()}
        assert {group.name for group in groups} <= found
    assert still_there(map(str, groups)) == []


async def test_one_program_after_the_other_gets_the_same_cgroups_with_limits_of_its_own(
    tmp_path: Path, cgroups: Cgroups
) -> None:
    needs(cgroups, "pids")
    spares = SpareSupervisors(Launcher(), cgroups, wanted=1)
    spares.refill()
    async with several(tmp_path, cgroups, spares=spares) as they:
        first = await they.next(Role(command=("/bin/true",), resources=Resources(cpu_millis=100)))
        assert await first.run() == Exit(code=0)
        groups = noted_groups(first.directory)
        await first.sandbox.remove()
        second = await they.next(Role(command=("/bin/true",), security=Security(pids=20)))
        assert noted_groups(second.directory) == groups != ()
        assert await second.run() == Exit(code=0)
        assert weights(second) in (["100"], ["1024"], [])
        assert of_each(second, "pids.max") == ["21"]
        await first.sandbox.remove()
        assert still_there(groups) == list(groups)
    assert still_there(groups) == []


async def test_a_program_with_a_limit_of_memory_leaves_its_cgroups_to_nobody(tmp_path: Path, cgroups: Cgroups) -> None:
    needs(cgroups, "memory")
    async with several(tmp_path, cgroups) as they:
        first = await they.next(Role(command=("/bin/true",), resources=Resources(memory=MEMORY)))
        assert await first.run() == Exit(code=0)
        groups = noted_groups(first.directory)
        await first.sandbox.remove()
        assert still_there(groups) == []
        second = await they.next(Role(command=shell("cat /proc/self/cgroup; echo $PPID")))
        assert await second.run() == Exit(code=0)
        assert not set(groups) & set(noted_groups(second.directory))


async def test_cgroups_in_which_a_program_has_made_others_are_nobody_elses(tmp_path: Path, cgroups: Cgroups) -> None:
    spares = SpareSupervisors(Launcher(), cgroups, wanted=1)
    spares.refill()
    async with several(tmp_path, cgroups, spares=spares) as they:
        first = await they.next(Role(command=("/bin/true",)))
        groups = noted_groups(first.directory)
        make_below(groups[0])
        assert await first.run() == Exit(code=0)
        await first.sandbox.remove()
        assert still_there(groups) == []


async def test_spare_supervisors_that_were_not_needed_leave_no_cgroup(cgroups: Cgroups) -> None:
    spares = SpareSupervisors(Launcher(), cgroups, wanted=2)
    spares.refill()
    groups = [Path(group) for each in spares.waiting for group, _ in each.groups]
    assert all(group.is_dir() for group in groups)
    await spares.close()
    assert [group for group in groups if group.exists()] == []


async def test_an_execution_weighs_as_much_as_its_cpus_from_its_start_on(tmp_path: Path, cgroups: Cgroups) -> None:
    needs(cgroups, "cpu")
    role = Role(command=shell("sleep 1000"), resources=Resources(cpu_millis=100))
    async with prepared(tmp_path, cgroups, role) as it:
        await it.arm()
        [usual] = weights(it)
        await it.sandbox.start()
        assert (usual, *weights(it)) in {("100", "10"), ("1024", "102")}


async def test_what_was_armed_and_never_started_leaves_no_cgroup(tmp_path: Path, cgroups: Cgroups) -> None:
    async with prepared(tmp_path, cgroups, Role(command=("/bin/true",))) as it:
        await it.arm()
        groups = cgroups_of(it)
        assert groups != []
        await it.sandbox.remove()
        assert still_there(groups) == []


@pytest.mark.parametrize("user", USERS)
async def test_a_daemon_without_a_name_ends_although_its_supervisor_was_killed(
    tmp_path: Path, cgroups: Cgroups, user: JobUser | None
) -> None:
    """Nothing but its cgroup tells whose it is."""
    command = ("/usr/bin/env", "python3", "-c", PROGRAM.read_text(), "nameless", "daemon", "worker")
    async with prepared(tmp_path, cgroups, Role(command=command), user) as it:
        await it.release()
        started = await _numbers(it, 3)
        record = read_record(it.directory.path)
        assert record is not None
        record.supervisor.kill()
        with pytest.raises(ExecutionError, match="was killed"):
            await it.sandbox.exited()
        assert _alive(started) == []


@pytest.mark.parametrize("user", USERS)
async def test_the_killer_ends_it_too(tmp_path: Path, cgroups: Cgroups, user: JobUser | None) -> None:
    command = ("/usr/bin/env", "python3", "-c", PROGRAM.read_text(), "nameless", "worker")
    async with prepared(tmp_path, cgroups, Role(command=command), user) as it:
        await it.release()
        started = await _numbers(it, 2)
        record = read_record(it.directory.path)
        assert record is not None
        record.supervisor.kill()
        await over(record.supervisor)
        late = ExecutionDeadline(execution=it.sandbox.execution, dead_by=0.0, directory=str(it.directory.path))
        while not kill(late, lambda: None):
            pass
        assert _alive(started) == []


@pytest.mark.parametrize(
    ("script", "code"),
    [("exec tail /dev/zero", 137), ("tail /dev/zero; true", 0)],
    ids=["all ends", "a part ends"],
)
async def test_more_memory_than_it_asked_for_is_told(tmp_path: Path, cgroups: Cgroups, script: str, code: int) -> None:
    needs(cgroups, "memory")
    role = Role(command=shell(script), resources=Resources(memory=MEMORY))
    async with prepared(tmp_path, cgroups, role) as it:
        assert await it.run() == Exit(code=code, out_of_memory=True)


async def test_more_processes_than_it_may_have_cannot_be_forked(tmp_path: Path, cgroups: Cgroups) -> None:
    needs(cgroups, "pids")
    fork = f"for n in range({BOMB}):\n    if not os.fork(): os.read(os.pipe()[0], 1)"
    text = f"import os\ntry:\n  {fork}\nexcept OSError: print(n)"
    role = Role(command=(sys.executable, "-c", text), security=Security(pids=20))
    async with prepared(tmp_path, cgroups, role) as it:
        assert await it.run() == Exit(code=0)
        assert it.printed() == [b"19"]


async def test_a_limit_that_does_not_hold_is_told_in_the_log(tmp_path: Path) -> None:
    role = Role(command=shell("echo ran"), resources=Resources(memory=MEMORY), security=Security(pids=20))
    async with prepared(tmp_path, None, role) as it:
        assert await it.run() == Exit(code=0)
        told = "resources.memory only reserves and security.pids does not hold here: this node has no cgroups"
        assert it.spool.tail(2) == (f"[muster] {told} with such limits", "ran")


def _lowest() -> str:
    """The score of a process that goes last when memory is short, as far as this machine lets anybody have it.

    Without CAP_SYS_RESOURCE no process here can have a lower score than the one it began with.
    """
    own = Path(SCORE)
    before = own.read_text()
    try:
        own.write_text("-900")
    except OSError:
        return before.strip()
    own.write_text(before)
    return "-900"


@pytest.fixture
def lowered() -> Iterator[str]:
    """Give this process the lowest score that it can have."""
    own, lowest = Path(SCORE), _lowest()
    before = own.read_text()
    own.write_text(lowest)
    yield lowest
    own.write_text(before)


@pytest.mark.parametrize("user", USERS)
async def test_a_program_does_not_inherit_that_its_agent_goes_last(
    tmp_path: Path, user: JobUser | None, lowered: str
) -> None:
    text = f"sleep 0.2; cat {SCORE} /proc/$PPID/oom_score_adj"
    async with prepared(tmp_path, None, Role(command=shell(text)), user) as it:
        assert await it.run() == Exit(code=0)
        assert it.printed() == [b"0", lowered.encode()]


@pytest.mark.parametrize("user", USERS)
async def test_a_companion_is_where_its_program_is(
    tmp_path: Path, cgroups: Cgroups, user: JobUser | None, lowered: str
) -> None:
    async with prepared(tmp_path, cgroups, Role(command=shell("sleep 1000")), user) as it:
        await it.release()
        async with attachable(it) as found:
            printed, _ = await found.printed("cat", SCORE, "/proc/self/cgroup")
        score, *places = printed.decode().splitlines()
        assert score == "0"
        assert {Path(group).name for group in cgroups_of(it)} <= {place.rpartition("/")[2] for place in places}
        assert _score_of_the_supervisor(it) == lowered, "the supervisor goes last again"
        await it.sandbox.stop(GRACE)


def _score_of_the_supervisor(trial: Trial) -> str:
    record = read_record(trial.directory.path)
    assert record is not None
    return Path(f"/proc/{record.supervisor.pid}/oom_score_adj").read_text().strip()


@pytest.fixture
def forgotten(cgroups: Cgroups) -> Iterator[tuple["subprocess.Popen[bytes]", list[Path]]]:
    """A program in cgroups that an earlier agent made, of which nothing else is left."""
    with subprocess.Popen(["sleep", "1000"]) as program:
        groups = [Path(group) for group, _ in cgroups.make()]
        for group in groups:
            (group / "cgroup.procs").write_text(str(program.pid))
        yield program, groups
        program.kill()


async def test_what_runs_in_a_cgroup_of_an_execution_that_nobody_knows_is_ended(
    tmp_path: Path, forgotten: tuple["subprocess.Popen[bytes]", list[Path]]
) -> None:
    program, groups = forgotten
    cgroups = own_cgroups(tmp_path.name[-4:] + str(os.getpid()))
    runtime = ProcessRuntime(spares=SpareSupervisors(Launcher(), cgroups, wanted=0))
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(asyncio.to_thread(program.wait), name="wait")
        assert await runtime.recover(tmp_path / "executions") == []
    assert waiting.result() == -signal.SIGKILL
    assert [group for group in groups if group.exists()] == []
    await runtime.close()


async def _numbers(it: Trial, number: int) -> list[int]:
    """The processes that it started, once it has started so many."""
    while len(it.printed()) < number + 1:
        it.spool.grew.clear()
        await it.spool.grew.wait()
    return [int(line) for line in it.printed() if line != b"ready"]


def _alive(pids: list[int]) -> list[int]:
    found = ((pid, stat(pid)) for pid in pids)
    return [pid for pid, known in found if known is not None and known.runs]
