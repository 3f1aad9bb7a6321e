"""What holds for plain processes beyond the contract of every runtime."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from agent.logs.spool import LogSpool
from agent.runtimes.kernel.pids import process
from agent.runtimes.kernel.subtree import Subtree
from agent.runtimes.process.record import UNKNOWN, read_record
from agent.runtimes.process.runtime import ProcessRuntime
from muster.domain.jobs.failure import ExecutionError, Exit, FailureKind
from muster.domain.jobs.job import InlineFile, Mount, Network, Role, Ulimit
from tests.contract.runtimes import (
    GRACE,
    MARK,
    ProcessPlace,
    assignment_for,
    directory_for,
    ignored,
    launch_for,
    running,
    shell,
    trial,
)
from tests.contract.survivors import over


@pytest.fixture
def place(tmp_path: Path) -> ProcessPlace:
    return ProcessPlace(tmp_path)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    directory = tmp_path / "disk"
    directory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", directory], check=True)
    yield directory
    subprocess.run(["umount", directory], check=True)


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    """A program in a session of its own that no sandbox knows."""
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as process:
        yield process
        process.kill()


def open_files() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


@pytest.mark.parametrize(("name", "code"), [("TERM", 143), ("KILL", 137), ("SEGV", 139)])
async def test_a_signal_is_told_as_a_shell_would(place: ProcessPlace, tmp_path: Path, name: str, code: int) -> None:
    async with trial(place, tmp_path, Role(command=shell(f"kill -{name} $$"))) as it:
        ended = await it.run()
        assert (ended, ended.signal) == (Exit(code=code), f"SIG{name}")


async def test_what_outlives_the_program_is_killed_before_the_end_is_told(place: ProcessPlace, tmp_path: Path) -> None:
    async with trial(place, tmp_path, Role(command=shell("sleep 1000 & echo done"))) as it:
        await it.release()
        assert await it.sandbox.exited() == Exit(code=0)
        assert running(it.sandbox.execution) == []
        await it.sandbox.drained()
        assert it.spool.tail(5) == ("done", "[muster] killed 1 process that the program had left running")


async def test_what_outlives_a_program_that_failed_does_not_hold_up_its_end(
    place: ProcessPlace, tmp_path: Path
) -> None:
    """The other ranks run on until it is told. After two seconds, as after a success, the child would have printed."""
    late = "(sleep 1; echo late) & kill -KILL $$"
    async with trial(place, tmp_path, Role(command=shell(late))) as it:
        assert await it.run() == Exit(code=137)
        assert it.spool.tail(5) == ("[muster] killed 2 processes that the program had left running",)


async def test_output_that_a_stranger_holds_is_cut_off_and_marked(place: ProcessPlace, tmp_path: Path) -> None:
    """Somebody beside the execution may have been given its output, and is not ours to kill."""
    async with trial(place, tmp_path, Role(command=shell("echo ready; exec sleep 1000"))) as it:
        await it.release()
        await it.says(b"ready")
        record = read_record(it.directory.path)
        assert record is not None
        assert record.program is not None
        with open(f"/proc/{record.program.pid}/fd/1", "wb", buffering=0):  # noqa: ASYNC230, PTH123 - a pipe
            record.program.kill()
            assert await it.end() == Exit(code=137)
        assert it.spool.tail(5) == ("ready", "[muster] output after the end is not kept")


async def test_what_outlives_the_program_may_print_before_it_is_ended(place: ProcessPlace, tmp_path: Path) -> None:
    fifo = tmp_path / "go"
    os.mkfifo(fifo)
    child = f"(read line < {fifo}; echo late; sleep 1000 >/dev/null 2>&1 &) & echo done"
    async with trial(place, tmp_path, Role(command=shell(child))) as it:
        await it.release()
        await it.says(b"done")
        await asyncio.to_thread(fifo.write_text, "go\n")
        await it.end()
        assert running(it.sandbox.execution) == []
        assert it.printed() == [b"done", b"late"]


async def test_stopping_ends_what_the_program_left_running(place: ProcessPlace, tmp_path: Path) -> None:
    async with trial(place, tmp_path, Role(command=shell("sleep 1000 >/dev/null 2>&1 & echo done"))) as it:
        await it.release()
        await it.says(b"done")
        record = read_record(it.directory.path)
        assert record is not None
        assert record.program is not None
        await over(record.program)
        await it.sandbox.stop(GRACE)
        assert running(it.sandbox.execution) == []
        assert await it.end() == Exit(code=0)


async def test_stopping_reaches_process_groups_that_a_shell_made(place: ProcessPlace, tmp_path: Path) -> None:
    async with trial(place, tmp_path, Role(command=shell("set -m; sleep 1000 & echo ready; wait"))) as it:
        await it.release()
        await it.says(b"ready")
        await it.sandbox.stop(GRACE)
        assert running(it.sandbox.execution) == []


async def test_a_child_may_use_the_grace_after_its_parent_is_gone(place: ProcessPlace, tmp_path: Path) -> None:
    child = "(trap 'sleep 0.3; echo saved; exit' TERM; echo ready; while :; do sleep 0.05; done)"
    async with trial(place, tmp_path, Role(command=shell(f"{child} & wait"))) as it:
        await it.release()
        await it.says(b"ready")
        await it.sandbox.stop(GRACE)
        assert await it.end() == Exit(code=143)
        assert it.printed() == [b"ready", b"saved"]


async def test_little_of_the_agents_environment_is_passed_on(tmp_path: Path) -> None:
    runtime = ProcessRuntime({"PATH": "/usr/bin:/bin", "TZ": "UTC", "SECRET": "x"})
    assignment = assignment_for(Role(command=("env",)))
    directory = directory_for(tmp_path, assignment.execution)
    with closing(LogSpool(directory.log)) as spool:
        sandbox = await runtime.prepare(assignment, directory, spool, (), ignored)
        await sandbox.arm(launch_for(assignment))
        await sandbox.start()
        await sandbox.exited()
        await sandbox.drained()
        await sandbox.remove()
        found = spool.tail(9)
    await runtime.close()
    assert sorted(found) == [f"{MARK}={assignment.execution}", "PATH=/usr/bin:/bin", "TZ=UTC"]


async def test_a_relative_entry_of_the_path_is_below_the_working_directory(place: ProcessPlace, tmp_path: Path) -> None:
    files = (InlineFile(path="bin/greet", content=b"#!/bin/sh\necho hello\n", executable=True),)
    role = Role(command=("greet",), env={"PATH": "bin:/bin"}, files=files)
    async with trial(place, tmp_path, role) as it:
        await it.run()
        assert it.printed() == [b"hello"]


async def test_a_script_without_its_interpreter_is_missed_when_arming(place: ProcessPlace, tmp_path: Path) -> None:
    files = (InlineFile(path="job", content=b"#!/no/such/python\n", executable=True),)
    async with trial(place, tmp_path, Role(command=("./job",), files=files)) as it:
        with pytest.raises(ExecutionError, match=r"is a script for /no/such/python, which is not there") as caught:
            await it.arm()
        assert caught.value.kind is FailureKind.COMMAND_NOT_FOUND


async def test_what_the_kernel_cannot_run_fails_at_the_start(place: ProcessPlace, tmp_path: Path) -> None:
    files = (InlineFile(path="job", content=b"neither a script nor a program", executable=True),)
    async with trial(place, tmp_path, Role(command=("./job",), files=files)) as it:
        await it.arm()
        with pytest.raises(ExecutionError, match=r'cannot start "\./job": Exec format error') as caught:
            await it.sandbox.start()
        assert caught.value.kind is FailureKind.COMMAND_NOT_FOUND


@pytest.mark.parametrize(
    ("argument", "reason"), [("x" * 200_000, "Argument list too long"), ("a\0b", "embedded null byte")]
)
async def test_arguments_that_the_kernel_does_not_take_fail_at_the_start(
    place: ProcessPlace, tmp_path: Path, argument: str, reason: str
) -> None:
    async with trial(place, tmp_path, Role(command=("true", argument))) as it:
        await it.arm()
        with pytest.raises(ExecutionError, match=f'cannot start "true": {reason}') as caught:
            await it.sandbox.start()
        assert caught.value.kind is FailureKind.INVALID_OPTION


async def test_no_file_stays_open_behind_an_execution(place: ProcessPlace, tmp_path: Path) -> None:
    before = open_files()
    async with trial(place, tmp_path, Role(command=shell("sleep 1000 & echo ready; wait"))) as it:
        during = open_files()
        await it.release()
        await it.says(b"ready")
        await it.sandbox.remove()
        assert open_files() <= during
    assert open_files() == before


async def test_a_missing_working_directory_is_missed_when_arming(place: ProcessPlace, tmp_path: Path) -> None:
    async with trial(place, tmp_path, Role(command=("true",), workdir="/no/such/directory")) as it:
        with pytest.raises(ExecutionError, match="the working directory /no/such/directory is not there") as caught:
            await it.arm()
        assert caught.value.kind is FailureKind.INVALID_OPTION


async def test_a_full_disk_is_noticed_when_arming(place: ProcessPlace, small_disk: Path) -> None:
    role = Role(command=("true",), files=(InlineFile(path="large", content=bytes(100_000)),))
    async with trial(place, small_disk, role) as it:
        with pytest.raises(ExecutionError, match="no space is left on the node") as caught:
            await it.arm()
        assert caught.value.kind is FailureKind.DISK_FULL
        assert list(it.directory.work.iterdir()) == []


@pytest.mark.parametrize(
    ("role", "network", "reason"),
    [
        (Role(command=("true",), user="1000"), Network.HOST, "user is only for containers"),
        (Role(command=("true",), mounts=(Mount(source="/a", target="/b"),)), Network.HOST, "mounts is only"),
        (Role(command=("true",), ulimits=(Ulimit(name="core", soft=0, hard=0),)), Network.HOST, "ulimits is only"),
        (Role(command=("true",)), Network.BRIDGE, "network: bridge is only for containers"),
        (Role(), Network.HOST, "there is no command"),
    ],
)
async def test_what_only_containers_can_do_is_refused(
    tmp_path: Path, role: Role, network: Network, reason: str
) -> None:
    assignment = assignment_for(role, network)
    directory = directory_for(tmp_path, assignment.execution)
    with closing(LogSpool(directory.log)) as spool:
        with pytest.raises(ExecutionError, match=reason) as caught:
            await ProcessRuntime().prepare(assignment, directory, spool, (), ignored)
        assert caught.value.kind is FailureKind.INVALID_OPTION


async def test_a_program_whose_number_was_given_out_again_has_no_processes(stranger: subprocess.Popen[bytes]) -> None:
    mine = process(stranger.pid)
    older = replace(mine, started=mine.started - 1)
    assert Subtree(supervisor=UNKNOWN, program=mine).members() == (mine,)
    gone = Subtree(supervisor=UNKNOWN, program=older)
    assert gone.members() == ()
    gone.signal(signal.SIGKILL)
    assert gone.kill(1) == ()
    assert stranger.poll() is None
