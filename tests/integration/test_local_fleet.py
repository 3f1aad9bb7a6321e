"""`muster up` and `muster demo`: a real coordinator and real agents on this machine."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[2]
UP = ("up", "--nodes", "2", "--listen", "127.0.0.1:0", "--no-docker")
LIMIT = 60.0


@contextmanager
def started(home: Path, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """The program; ended in order if a test leaves it running, so that nothing of it stays."""
    program = subprocess.Popen(
        command(*arguments),
        env=environment(home),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with program:
        try:
            yield program
        finally:
            program.terminate()


def ran(home: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command(*arguments), env=environment(home), capture_output=True, text=True, check=False, timeout=LIMIT
    )


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "from muster.cli.main import main; main()", *arguments]


def environment(home: Path) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("MUSTER_")}
    return {**own, "MUSTER_HOME": str(home), "PYTHONPATH": str(ROOT)}


def read_until(program: "subprocess.Popen[str]", words: str) -> list[str]:
    """What it printed up to the line with these words."""
    assert program.stdout is not None
    lines: list[str] = []
    for line in program.stdout:
        lines.append(line.rstrip())
        if words in line:
            return lines
    raise AssertionError(f"it ended without saying {words!r}: {lines}")


def test_up_runs_jobs_until_ctrl_c_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with started(tmp_path, *UP) as program:
        said = read_until(program, "Ctrl-C stops all of it")
        children = psutil.Process(program.pid).children(recursive=True)
        assert [line.split()[:2] for line in said[1:3]] == [["local-1", "ready"], ["local-2", "ready"]]

        done = ran(tmp_path, "run", "-N", "2", "--", "/bin/sh", "-c", "echo rank $RANK of $WORLD_SIZE")
        assert (done.returncode, sorted(done.stdout.splitlines())) == (0, ["[0] rank 0 of 2", "[1] rank 1 of 2"])

        program.send_signal(signal.SIGINT)
        rest, _ = program.communicate(timeout=LIMIT)

    assert (program.returncode, rest) == (0, "stopped\n")
    assert psutil.wait_procs(children, LIMIT)[1] == []  # the keeper ends when it sees that its agent has
    assert not (tmp_path / "endpoint").exists()


def test_what_was_run_is_still_known_after_a_restart(tmp_path: Path) -> None:
    with started(tmp_path, *UP) as program:
        read_until(program, "Ctrl-C stops all of it")
        job = ran(tmp_path, "run", "-d", "--", "true").stdout.strip()
        assert ran(tmp_path, "wait", job).returncode == 0
        program.terminate()
        program.communicate(timeout=LIMIT)

    with started(tmp_path, *UP) as program:
        read_until(program, "Ctrl-C stops all of it")
        assert ran(tmp_path, "wait", job).stdout.startswith(f"true ({job}) succeeded")


def test_a_second_up_in_the_same_directory_is_refused(tmp_path: Path) -> None:
    with started(tmp_path, *UP) as program:
        read_until(program, "Ctrl-C stops all of it")

        second = ran(tmp_path, *UP)

    assert second.returncode == 1
    assert second.stderr.startswith("error: the coordinator ended with exit code 1")
    assert "is in use by the coordinator with process id" in second.stderr


@pytest.mark.parametrize("name", ["coordinator", "agent"])
def test_a_program_that_dies_is_named_and_takes_the_fleet_along(tmp_path: Path, name: str) -> None:
    with started(tmp_path, *UP) as program:
        read_until(program, "Ctrl-C stops all of it")
        children = psutil.Process(program.pid).children()
        next(child for child in children if name in child.cmdline()).kill()
        _, said = program.communicate(timeout=LIMIT)

    assert program.returncode == 1
    assert f"error: the {name} was killed by SIGKILL; its log is {tmp_path}/local/{name}" in said
    assert psutil.wait_procs(children, LIMIT)[1] == []  # the keeper ends when it sees that its agent has


def test_the_demo_runs_the_ring_and_clears_up(tmp_path: Path) -> None:
    done = ran(tmp_path, "demo", str(ROOT / "examples" / "ring" / "job.yaml"))

    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[:2] for line in lines if "master=" in line] == [["0", "worker"]]
    for rank in range(3):
        assert any(line.startswith(f"[{rank}] rank {rank}: the sum over 3 ranks is right") for line in lines)
    assert list(tmp_path.iterdir()) == []
