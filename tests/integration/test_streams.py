"""The command line where output cannot be written, where input is not for it, and where its home is not its own."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from muster.cli.exit_codes import ExitCode
from muster.domain.ids import JobId
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.rpc.v1 import jobs_pb2
from tests.integration.canned_coordinator import Canned, Pause, serving
from tests.integration.command_line import Muster
from tests.unit.cli import values
from tests.unit.cli.values import attempt, execution, line

RUNNING = values.job(JobPhase.RUNNING, attempt(execution(0, State.RUNNING)), started=1)
PROGRAM = (sys.executable, "-c", "from muster.cli.main import main; main()")
LIMIT = 60.0


@pytest.fixture
def muster() -> Iterator[Muster]:
    canned = Canned(jobs=[RUNNING])
    with serving(canned) as address:
        yield Muster(canned, address)


def in_shell(muster: Muster, line: str) -> "subprocess.CompletedProcess[str]":
    """What a shell makes of a line in which `muster` is the program."""
    alias = f"muster() {{ '{PROGRAM[0]}' '{PROGRAM[1]}' '{PROGRAM[2]}' \"$@\"; }}; "
    return subprocess.run(
        ["bash", "-c", alias + line],
        env={**os.environ, **muster.environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.parametrize("command", ["jobs", "schema", "version", "logs ring", "--help", "show ring -o json"])
def test_output_that_finds_no_room_is_told_in_one_sentence(muster: Muster, command: str) -> None:
    muster.canned.logs = [[line(b"hello")]]

    done = in_shell(muster, f"muster {command} > /dev/full")

    assert (done.returncode, done.stderr) == (1, "error: cannot write the output: No space left on device\n")


@pytest.mark.parametrize("command", ["jobs", "version", "show ring"])
def test_a_closed_stdout_is_told_in_one_sentence(muster: Muster, command: str) -> None:
    done = in_shell(muster, f"muster {command} >&-")

    assert (done.returncode, done.stderr) == (1, "error: cannot write the output: Bad file descriptor\n")


def test_what_has_nothing_to_print_does_its_work_without_a_stdout(muster: Muster) -> None:
    done = in_shell(muster, "muster --coordinator 127.0.0.1:1 jobs >&- <&-")

    assert done.returncode == ExitCode.UNAVAILABLE
    assert done.stderr.startswith("error: no coordinator answers at 127.0.0.1:1")


@pytest.mark.parametrize("follow", ["", "-f"])
def test_a_reader_that_has_seen_enough_ends_the_program_as_it_ends_others(muster: Muster, follow: str) -> None:
    muster.canned.logs = [[line(b"a"), *[line(b"b" * 10_000)] * 100]]

    done = in_shell(muster, f"muster logs ring {follow} | head -1; echo ${{PIPESTATUS[0]}}")

    assert (done.stdout, done.stderr) == ("[0] a\n141\n", "")


def test_a_home_that_cannot_be_written_is_told_with_the_way_out(muster: Muster, tmp_path: Path) -> None:
    muster.environment["MUSTER_HOME"] = "/proc/nothing"

    done = in_shell(muster, f"muster up --nodes 1 --listen 127.0.0.1:0 --dir {tmp_path} --no-docker")

    assert done.returncode == 1
    assert done.stderr.startswith("error: cannot write to /proc/nothing: ")
    assert "set MUSTER_HOME to a directory that you may write to" in done.stderr


def test_a_directory_that_cannot_be_made_is_told_in_one_sentence(muster: Muster) -> None:
    done = in_shell(muster, "muster up --nodes 1 --listen 127.0.0.1:0 --dir /proc/nothing/up")

    assert (done.returncode, done.stderr) == (1, "error: /proc/nothing: No such file or directory\n")


@pytest.mark.parametrize("source", ["echo 'print(1)' |", "< {file}"])
def test_input_that_would_be_lost_is_refused_before_anything_runs(muster: Muster, tmp_path: Path, source: str) -> None:
    file = tmp_path / "code.py"
    file.write_text("print(1)\n")
    command = "muster run -d -- python3 -"

    done = in_shell(muster, f"{source} {command}" if "|" in source else f"{command} {source.format(file=file)}")

    assert done.returncode == ExitCode.USAGE
    assert done.stderr.startswith("error: data waits on stdin, which does not reach a job")
    assert "`< /dev/null`" in done.stderr
    assert muster.canned.asked == []


@pytest.mark.parametrize("source", ["true |", "</dev/null", "<&-"])
def test_no_input_is_no_matter(muster: Muster, source: str) -> None:
    command = "muster run -d -- true"

    done = in_shell(muster, f"{source} {command}" if "|" in source else f"{command} {source}")

    assert (done.returncode, done.stdout) == (0, "new1\n")


def test_input_that_comes_while_the_job_runs_is_told_in_the_end(muster: Muster) -> None:
    ended = values.job(JobPhase.SUCCEEDED, attempt(execution(0, State.SUCCEEDED)), started=1, ended=3)
    job = JobId("new1")
    muster.canned.watches = [[replace(RUNNING, id=job), Pause.UNTIL_STOP, replace(ended, id=job)]]
    program = subprocess.Popen(
        [*PROGRAM, "run", "--", "true"],
        env={**os.environ, **muster.environment},
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with program:
        with muster.canned.heard:
            assert muster.canned.heard.wait_for(lambda: muster.canned.asked_for(jobs_pb2.LogsRequest), timeout=LIMIT)
        assert program.stdin is not None
        assert program.stderr is not None
        program.stdin.write("print(1)\n")
        program.stdin.flush()
        muster.canned.stop_ordered.set()
        said = program.stderr.read()

    assert program.returncode == 0
    assert said.splitlines()[-1] == "warning: what has come on stdin since the start did not reach the job"
