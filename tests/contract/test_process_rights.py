"""What a process of a job can reach of its node: its own directories, and nothing of the agent's or of the engine's."""

import asyncio
import os
import shutil
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from agent.core.launching.job_user import NOBODY, JobUser
from agent.fencing.killer import Killer
from agent.logs.spool import LogSpool
from agent.runtimes.kernel.pids import stat as stat_of
from agent.runtimes.kernel.rights import may_switch
from agent.runtimes.process.launcher import Launcher
from agent.runtimes.process.record import read_record
from agent.runtimes.process.runtime import ProcessRuntime
from agent.runtimes.process.spares import SpareSupervisors
from muster.domain.gangs.log import Stream
from muster.domain.jobs.failure import ExecutionError, Exit, FailureKind
from muster.domain.jobs.job import InlineFile, Role, Security
from tests.contract.runtimes import GRACE, Trial, assignment_for, directory_for, ignored, launch_for, shell

pytestmark = pytest.mark.skipif(not may_switch(), reason="only an agent with root's rights may switch users")

OWN_USERS = range(1_879_048_192, 1_879_048_194)

OF_THE_C_LIBRARY = 0b11 << 31
"""Signals 32 and 33, of which no program can choose what they do."""

INODE, NAME = 6, 7
"""Columns of /proc/net/unix."""

RIGHTS = "grep -E '^(CapInh|CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs|Groups):' /proc/self/status"


@pytest.fixture
def state() -> Iterator[Path]:
    """The state directory of an agent, closed to others as it is installed."""
    with TemporaryDirectory(dir="/var/tmp", prefix="muster-test-") as directory:
        trust = Path(directory, "trust")
        trust.mkdir(mode=0o700)
        for name in ("key.pem", "node.json"):
            (trust / name).write_text("secret\n")
            (trust / name).chmod(0o600)
        yield Path(directory)


@asynccontextmanager
async def run(state: Path, role: Role, user: JobUser | None = NOBODY) -> AsyncIterator[Trial]:
    """An execution that was started in that state directory."""
    async with prepared(state, role, user) as trial:
        await trial.release()
        yield trial


@asynccontextmanager
async def prepared(
    state: Path, role: Role, user: JobUser | None = NOBODY, runtime: ProcessRuntime | None = None
) -> AsyncIterator[Trial]:
    """An execution that waits there for the other members of its gang."""
    assignment = assignment_for(role)
    directory = directory_for(state, assignment.execution)
    async with AsyncExitStack() as stack:
        if runtime is None:
            launcher = Launcher(other_users=user is not None)
            runtime = ProcessRuntime(spares=SpareSupervisors(launcher, wanted=0), job_user=user)
            stack.push_async_callback(runtime.close)
        spool = stack.enter_context(closing(LogSpool(directory.log)))
        sandbox = await runtime.prepare(assignment, directory, spool, (), ignored)
        stack.push_async_callback(sandbox.remove)
        yield Trial(sandbox, spool, directory, launch_for(assignment))


async def printed(state: Path, text: str, user: JobUser | None = NOBODY, **options: Any) -> list[str]:
    """What a shell script prints that ends well."""
    role = replace(Role(command=shell(text)), **options)
    async with run(state, role, user) as it:
        assert await it.end() == Exit(code=0), it.printed(Stream.STDERR)
        return [line.decode() for line in it.printed()]


async def test_it_is_the_user_for_jobs_and_has_no_rights(state: Path) -> None:
    assert await printed(state, f"id -u; id -g; {RIGHTS}") == [
        "65534",
        "65534",
        "Groups:\t ",
        *(f"Cap{kind}:\t{'0' * 16}" for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")),
        "NoNewPrivs:\t1",
    ]


async def test_what_it_gets_is_its_own(state: Path) -> None:
    files = (InlineFile(path="deep/down", content=b"x\n"),)
    text = "echo $HOME $USER; pwd; touch here deep/too ../outputs/kept; echo y >> deep/down; cat deep/down"
    async with run(state, Role(command=shell(text), files=files)) as it:
        assert await it.end() == Exit(code=0), it.printed(Stream.STDERR)
        work = str(it.directory.work).encode()
        assert it.printed() == [work + b" muster", work, b"x", b"y"]
        kept = (it.directory.outputs / "kept").stat()
        assert (kept.st_uid, kept.st_gid) == (65534, 65534)


async def test_what_another_process_of_the_user_puts_in_the_way_is_not_followed(state: Path) -> None:
    """A user whose gang waits for its members can have other code run on the node, which knows where the files will
    be.
    """
    outside = state / "outside"
    outside.mkdir()
    role = Role(command=shell("cat deep/down"), files=(InlineFile(path="deep/down", content=b"x\n"),))
    async with prepared(state, role) as it:
        links = f"ln -s {outside} {it.directory.work}/deep; ln -s {outside}/made {it.directory.work}/.down.part"
        assert await printed(state, f"({links}) 2>/dev/null; echo done") == ["done"]
        await it.arm()
        assert await printed(state, f"rm -r {it.directory.work}/deep && {links}; echo done") == ["done"]
        assert await it.run() == Exit(code=0), it.printed(Stream.STDERR)
        assert it.printed() == [b"x"]
    assert list(outside.iterdir()) == []


async def test_nothing_is_open_but_its_three_streams(state: Path) -> None:
    assert await printed(state, "exec ls /proc/self/fd | tr '\\n' ' '") == ["0 1 2 3 "]  # the last one is the listing


async def test_signals_are_as_every_program_finds_them(state: Path) -> None:
    (ignored_signals,) = await printed(state, "grep SigIgn /proc/self/status")
    assert int(ignored_signals.removeprefix("SigIgn:"), 16) & ~OF_THE_C_LIBRARY == 0


async def test_nothing_of_the_agent_can_be_read_or_changed(state: Path) -> None:
    other = directory_for(state, assignment_for(Role()).execution)
    closed = [*(state / "trust" / name for name in ("key.pem", "node.json")), other.path / "execution.json"]
    closed[-1].write_text("{}")
    closed[-1].chmod(0o600)
    for path in (state, state / "executions", state / "trust"):
        path.chmod(0o700)
    reads = "; ".join(f"cat {path} 2>/dev/null" for path in (*closed, "$HERE/log.cri", "$HERE/process.json"))
    lists = "; ".join(f"ls {path} 2>/dev/null" for path in (state, state / "executions", state / "trust", other.work))
    writes = "; ".join(f"touch {path} 2>/dev/null && echo made" for path in (state / "x", "$HERE/x", "$HERE/config/x"))
    renames = "mv $HERE/config $HERE/outputs/ 2>/dev/null && echo moved; echo go > $HERE/bell 2>/dev/null && echo rung"
    text = f"HERE=$(dirname $PWD); {reads}; {lists}; {writes}; {renames}; echo done"
    assert await printed(state, text) == ["done"]


async def test_a_state_directory_stays_as_closed_as_it_was_but_for_who_knows_the_way(state: Path) -> None:
    async with run(state, Role(command=shell("true"))) as it:
        await it.end()
        modes = [
            stat.S_IMODE(path.stat().st_mode) for path in (state, it.directory.log, it.directory.path / "process.json")
        ]
        assert modes == [0o701, 0o600, 0o600]


async def test_agent_supervisor_launcher_and_killer_take_no_signal_from_it(state: Path) -> None:
    killer = Killer()
    await asyncio.to_thread(killer.start)
    try:
        async with run(state, Role(command=shell("sleep 60"))) as it:
            await it.sandbox.stop(GRACE)
        launcher = Launcher()
        launcher.start()
        targets = " ".join(map(str, (os.getpid(), os.getppid(), launcher.pid, *_supervisors())))
        tries = ["kill -0 $it 2>/dev/null && echo took"]  # the same rights as for any other signal
        reads = [f"cat /proc/$it/{name} 2>/dev/null | wc -c | grep -v '^0$'" for name in ("environ", "mem", "maps")]
        links = ["ls /proc/$it/fd 2>/dev/null", "readlink /proc/$it/cwd 2>/dev/null"]
        text = f"for it in {targets} $PPID; do {'; '.join((*tries, *reads, *links))}; done; echo done"
        assert await printed(state, text) == ["done"]
        await launcher.close()
    finally:
        killer.close()


def _supervisors() -> list[int]:
    return [
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/comm")
        if _text(path) in {"muster-supervis", "muster-killer"}
    ]


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


async def test_no_socket_of_ours_has_a_name(state: Path) -> None:
    """Agent, launcher, supervisors and killer speak over pairs of sockets, which nobody else can connect to."""
    killer = Killer()
    await asyncio.to_thread(killer.start)
    try:
        async with run(state, Role(command=shell("sleep 60"))) as it:
            record = read_record(it.directory.path)
            assert record is not None
            ours = {os.getpid(), record.supervisor.pid}
            inodes = {inode for pid in ours for inode in _sockets(pid)}
            assert inodes
            assert [path for inode, path in _named() if inode in inodes] == []
    finally:
        killer.close()


def _named() -> list[tuple[str, str]]:
    """Inode and name of every socket that has one."""
    rows = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:]]
    return [(row[INODE], row[NAME]) for row in rows if len(row) > NAME]


def _sockets(pid: int) -> set[str]:
    links = [str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()]
    return {link.removeprefix("socket:[").rstrip("]") for link in links if link.startswith("socket:")}


async def test_the_engine_does_not_listen_to_it(state: Path) -> None:
    engine = state / "docker.sock"
    engine.touch()
    engine.chmod(0o660)
    assert await printed(state, f"cat {engine} 2>/dev/null; tee {engine} < /dev/null 2>/dev/null; echo done") == [
        "done"
    ]


OUTSIDE = ("/etc/muster-test", "../outside", "a/../../outside")


@pytest.mark.parametrize("path", OUTSIDE)
async def test_files_are_not_written_where_only_the_agent_may(state: Path, path: str) -> None:
    role = Role(command=shell("true"), files=(InlineFile(path=path, content=b"x"),))
    with pytest.raises(ExecutionError, match="does not lie in the working directory") as caught:
        async with run(state, role):
            pass
    assert caught.value.kind is FailureKind.INVALID_OPTION
    assert not Path("/etc/muster-test").exists()  # noqa: ASYNC240 - what only takes a moment


async def test_a_directory_that_it_may_not_enter_is_missed_when_arming(state: Path) -> None:
    closed = state / "closed"
    closed.mkdir(mode=0o700)
    with pytest.raises(ExecutionError, match=f"user 65534:65534 may not enter {closed}"):
        async with run(state, Role(command=shell("true"), workdir=str(closed))):
            pass


async def test_a_program_that_it_may_not_run_is_missed_when_arming(state: Path) -> None:
    program = state / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    with pytest.raises(ExecutionError, match=f"user 65534:65534 may not run {program}") as caught:
        async with run(state, Role(command=(str(program),))):
            pass
    assert caught.value.kind is FailureKind.COMMAND_NOT_FOUND


async def test_a_pipe_in_place_of_a_program_holds_nothing_up(state: Path) -> None:
    pipe = state / "pipe"
    os.mkfifo(pipe)
    pipe.chmod(0o755)
    async with asyncio.timeout(20):
        with pytest.raises(ExecutionError, match=f'cannot start "{pipe}": Permission denied'):
            async with run(state, Role(command=(str(pipe),))):
                pass


async def test_what_containers_may_ask_for_is_refused(state: Path) -> None:
    with pytest.raises(ExecutionError, match="security is only for containers"):
        async with run(state, Role(command=shell("true"), security=Security(image_user=True))):
            pass


async def test_a_setuid_program_gains_it_nothing(state: Path) -> None:
    """The kernel keeps the user (no_new_privs); `su` would at least ask for a password, a copy of root's shell would
    not.
    """
    shell_of_root = Path(shutil.copy("/bin/sh", state / "sh"))
    shell_of_root.chmod(0o4755)  # noqa: ASYNC240 - what only takes a moment
    assert await printed(state, f"{shell_of_root} -p -c 'id -u'") == ["65534"]


async def test_with_users_of_their_own_processes_cannot_touch_each_other(state: Path) -> None:
    spares = SpareSupervisors(Launcher(other_users=True), wanted=0)
    runtime = ProcessRuntime(spares=spares, job_user=NOBODY, users=OWN_USERS)
    async with prepared(state, Role(command=shell("id -u; sleep 60")), runtime=runtime) as first:
        await first.release()
        await first.says(b"1879048192")
        record = read_record(first.directory.path)
        assert record is not None
        assert record.program is not None
        victim = record.program.pid
        text = f"id -u; id -g; kill -0 {victim} 2>/dev/null"
        text += f"; cat /proc/{victim}/environ {first.directory.outputs}/* 2>/dev/null"
        async with prepared(state, Role(command=shell(f"{text}; echo done")), runtime=runtime) as second:
            await second.release()
            await second.end()
            assert second.printed() == [b"1879048193", b"65534", b"done"]
            with pytest.raises(ExecutionError, match="all 2 users for processes are taken"):
                async with prepared(state, Role(command=shell("true")), runtime=runtime):
                    pass
            await second.sandbox.remove()
            shutil.rmtree(second.directory.path)
        async with prepared(state, Role(command=shell("id -u")), runtime=runtime) as third:
            await third.release()
            await third.end()
            assert third.printed() == [b"1879048193"]
    await runtime.close()


async def test_of_a_user_of_its_own_nothing_is_left_and_nobody_else_gets_in(state: Path) -> None:
    """The next execution of that user would be at the mercy of what has left the session of this one."""
    spares = SpareSupervisors(Launcher(other_users=True), wanted=0)
    runtime = ProcessRuntime(spares=spares, job_user=NOBODY, users=OWN_USERS)
    escaped = "echo hush > secret; setsid sh -c 'echo up; exec sleep 1000' & sleep 1000"
    async with closed(runtime), prepared(state, Role(command=shell(escaped)), runtime=runtime) as first:
        await first.release()
        await first.says(b"up")
        assert (uid := first.directory.work.stat().st_uid) in OWN_USERS
        assert _running_as(uid)
        other = Role(command=shell(f"cat {first.directory.work}/secret 2>&1 | grep -o denied"))
        async with prepared(state, other, runtime=runtime) as second:
            await second.release()
            await second.end()
            assert second.printed() == [b"denied"]
        await first.sandbox.remove()
        assert _running_as(uid) == set()


@asynccontextmanager
async def closed(runtime: ProcessRuntime) -> AsyncIterator[None]:
    """The runtime lets go at the end of what is within."""
    try:
        yield
    finally:
        await runtime.close()


def _running_as(uid: int) -> set[str]:
    """The names of what runs as a user."""
    found = set()
    for directory in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            there = stat_of(int(directory.name))
            if directory.stat().st_uid == uid and there is not None and there.runs:
                found.add((directory / "comm").read_text().strip())
    return found


async def test_an_agent_without_such_a_user_runs_them_as_itself(state: Path) -> None:
    assert await printed(state, "id -u", None) == [str(os.geteuid())]
