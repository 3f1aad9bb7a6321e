"""`muster up` and `muster demo`: a real coordinator and real agents on this machine."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import psutil
import pytest

from muster.cli.exit_codes import ExitCode

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
        assert any("the nodes share the CPUs and memory of this machine" in line for line in said)

        done = ran(tmp_path, "run", "-N", "2", "--", "/bin/sh", "-c", "echo rank $RANK of $WORLD_SIZE")
        assert (done.returncode, sorted(done.stdout.splitlines())) == (0, ["[0] rank 0 of 2", "[1] rank 1 of 2"])

        program.send_signal(signal.SIGINT)
        rest, _ = program.communicate(timeout=LIMIT)

    assert (program.returncode, rest) == (0, "stopped\n")
    assert psutil.wait_procs(children, LIMIT)[1] == []  # the killer ends when it sees that its agent has
    assert not (tmp_path / "endpoint").exists()


def test_up_simulates_mig_devices_and_gives_each_to_one_execution_by_its_uuid(tmp_path: Path) -> None:
    show = "echo $CUDA_VISIBLE_DEVICES = $NVIDIA_VISIBLE_DEVICES"
    with started(tmp_path, *UP, "--gpu-provider", "fake:1xH100,1xH100/3g.40gb/1g.10gb") as program:
        read_until(program, "Ctrl-C stops all of it")
        nodes = json.loads(ran(tmp_path, "nodes", "-o", "json").stdout)
        slices = sorted(gpu["uuid"] for node in nodes for gpu in node["inventory"]["gpus"] if gpu["mig"] == "1g.10gb")

        done = ran(tmp_path, "run", "-N", "2", "--mig", "1g.10gb", "--", "/bin/sh", "-c", show)
        refused = ran(tmp_path, "run", "-N", "3", "--mig", "1g.10gb", "--", "true")

    assert len(set(slices)) == 2
    assert sorted(line.partition(" ")[2] for line in done.stdout.splitlines()) == [
        f"{each} = {each}" for each in slices
    ]
    assert refused.returncode == ExitCode.REFUSED
    assert "needs 1 MIG device 1g.10gb, 0 are free" in refused.stderr


def offered(home: Path) -> list[tuple[int, int]]:
    """CPUs and memory of each node."""
    nodes = json.loads(ran(home, "nodes", "-o", "json").stdout)
    return [(node["inventory"]["cpus"], node["inventory"]["memory"]) for node in nodes]


def test_the_nodes_share_out_what_the_machine_has(tmp_path: Path) -> None:
    with started(tmp_path, *UP) as program:
        read_until(program, "Ctrl-C stops all of it")
        shares = offered(tmp_path)

    cpus, memory = psutil.cpu_count() or 1, psutil.virtual_memory().total
    assert sum(share for share, _ in shares) == max(cpus, 2)
    assert sum(share for _, share in shares) == memory


def test_each_node_offers_the_whole_machine_where_that_is_wished(tmp_path: Path) -> None:
    with started(tmp_path, *UP, "--whole-machine") as program:
        said = read_until(program, "Ctrl-C stops all of it")
        shares = offered(tmp_path)

    assert shares == [(psutil.cpu_count() or 1, psutil.virtual_memory().total)] * 2
    assert any(
        "each node offers all CPUs and memory of this machine, so 2 times what there is" in line for line in said
    )


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

    assert second.returncode == ExitCode.REFUSED
    assert second.stderr.startswith(f"error: `muster up` runs in {tmp_path}/local already as process {program.pid}")
    assert "and serves at 127.0.0.1:" in second.stderr
    assert second.stderr.endswith("`muster down` ends it\n")


def test_down_ends_all_of_it_and_then_finds_nothing(tmp_path: Path) -> None:
    with started(tmp_path, *UP) as program:
        read_until(program, "Ctrl-C stops all of it")
        children = psutil.Process(program.pid).children(recursive=True)

        ended = ran(tmp_path, "down")

        assert (ended.returncode, ended.stderr) == (0, "")
        assert ended.stdout.startswith("stopped what served at 127.0.0.1:")
        assert program.wait(LIMIT) == 0
    assert psutil.wait_procs(children, LIMIT)[1] == []
    assert not (tmp_path / "endpoint").exists()
    assert ran(tmp_path, "down").stdout == f"nothing runs in {tmp_path}/local\n"


def test_when_up_is_killed_its_programs_end_and_the_next_one_starts(tmp_path: Path) -> None:
    with started(tmp_path, *UP) as program:
        read_until(program, "Ctrl-C stops all of it")
        children = psutil.Process(program.pid).children(recursive=True)
        program.kill()

        with started(tmp_path, *UP) as second:
            assert read_until(second, "Ctrl-C stops all of it")
            assert ran(tmp_path, "run", "--", "true").returncode == 0

    assert psutil.wait_procs(children, LIMIT)[1] == []


def test_down_ends_what_a_killed_up_has_left(tmp_path: Path) -> None:
    left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", str(tmp_path / "local")])
    with left:
        (tmp_path / "local").mkdir()
        note = {"pid": 2**22, "address": "127.0.0.1:1", "programs": [left.pid, os.getpid()]}
        (tmp_path / "local" / "up.lock").write_text(json.dumps(note))

        ended = ran(tmp_path, "down")

        assert ended.stdout == "stopped what served at 127.0.0.1:1\n"
        assert left.wait(LIMIT) == -signal.SIGTERM


def test_a_port_that_is_taken_is_told_in_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        refused = ran(tmp_path, "up", "--listen", str(port))

    assert (refused.returncode, refused.stderr) == (
        ExitCode.REFUSED,
        f"error: port {port} is taken by another program; `--listen 127.0.0.1:0` takes a free one\n",
    )


@pytest.mark.parametrize(
    ("listen", "sentence"),
    [
        ("0.0.0.0:0", "0.0.0.0:0 is no loopback address such as 127.0.0.1:7460"),
        ("127.0.0.1:web", "the port in '127.0.0.1:web' must be a number from 1 to 65535"),
        ("99999", "the port in '127.0.0.1:99999' must be a number from 1 to 65535"),
    ],
)
def test_an_address_that_up_cannot_serve_is_told_in_one_sentence(tmp_path: Path, listen: str, sentence: str) -> None:
    refused = ran(tmp_path, "up", "--listen", listen)

    assert (refused.returncode, sentence in refused.stderr, refused.stderr.count("\n")) == (ExitCode.USAGE, True, 1)


@pytest.mark.parametrize("name", ["coordinator", "agent"])
def test_a_program_that_dies_is_named_and_takes_the_fleet_along(tmp_path: Path, name: str) -> None:
    with started(tmp_path, *UP) as program:
        read_until(program, "Ctrl-C stops all of it")
        children = psutil.Process(program.pid).children()
        next(child for child in children if name in child.cmdline()).kill()
        _, said = program.communicate(timeout=LIMIT)

    assert program.returncode == 1
    assert f"error: the {name} was killed by SIGKILL; its log is {tmp_path}/local/{name}" in said
    assert psutil.wait_procs(children, LIMIT)[1] == []  # the killer ends when it sees that its agent has


def test_the_demo_runs_the_ring_and_clears_up(tmp_path: Path) -> None:
    done = ran(tmp_path, "demo", str(ROOT / "examples" / "ring" / "job.yaml"))

    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[:2] for line in lines if "master=" in line] == [["0", "worker"]]
    for rank in range(3):
        assert any(line.startswith(f"[{rank}] rank {rank}: the sum over 3 ranks is right") for line in lines)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_sent_once_and_then_only_what_has_changed(tmp_path: Path) -> None:
    folder = tmp_path / "trainer"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "config").write_text("[core]")
    (folder / ".gitignore").write_text("*.log\n")
    (folder / "run.log").write_text("left out")
    (folder / "train.py").write_text("print('hello')")
    with started(tmp_path, *UP) as program:
        read_until(program, "Ctrl-C stops all of it")
        first = json.loads(ran(tmp_path, "upload", str(folder), "-o", "json").stdout)
        again = json.loads(ran(tmp_path, "upload", str(folder), "-o", "json").stdout)
        (folder / "train.py").write_text("print('hello again')")
        told = ran(tmp_path, "upload", str(folder)).stdout
        program.send_signal(signal.SIGINT)
        assert program.wait(LIMIT) == 0
    assert (first["files"], first["new"]) == (2, 3)  # two files and the tree
    assert (again["tree"], again["new"], again["sent"]) == (first["tree"], 0, 0)
    assert told.startswith("code 2 files, ")
    assert ": 2 new, " in told


def test_a_folder_that_a_job_brings_along_is_the_working_directory_of_every_rank(tmp_path: Path) -> None:
    folder = tmp_path / "trainer"
    (folder / "lib").mkdir(parents=True)
    (folder / "lib" / "words.txt").write_text("from the folder")
    (folder / "latest").symlink_to("lib/words.txt")
    script = '#!/bin/sh\ncat latest; echo " $RANK"; test "$PWD" = "$MUSTER_CODE_DIR" && cat extra\n'
    (folder / "train.sh").write_text(script)
    (folder / "train.sh").chmod(0o755)
    (tmp_path / "job.yaml").write_text(
        "name: brings-code\nworkers: 2\ncode: trainer\ncommand: [./train.sh]\n"
        'files: [{path: extra, content: "and a file\\n"}]\n'
    )
    with started(tmp_path, *UP) as program:
        read_until(program, "Ctrl-C stops all of it")
        done = ran(tmp_path, "submit", "-f", str(tmp_path / "job.yaml"))
        again = ran(tmp_path, "run", "--code", str(folder), "--", "/bin/sh", "-c", "echo more >> latest; cat latest")
        unchanged = ran(tmp_path, "run", "--code", str(folder), "--", "cat", "latest")
        program.send_signal(signal.SIGINT)
        assert program.wait(LIMIT) == 0
    assert sorted(done.stdout.splitlines()) == [
        "[0] and a file",
        "[0] from the folder 0",
        "[1] and a file",
        "[1] from the folder 1",
    ], done.stderr
    assert "code 3 files, " in done.stderr
    assert "0 new, 0 B sent" in again.stderr
    assert again.stdout.rstrip() == "[0] from the foldermore"
    assert unchanged.stdout.rstrip() == "[0] from the folder"


def test_a_demo_whose_job_brings_code_has_a_depot(tmp_path: Path) -> None:
    folder = tmp_path / "trainer"
    folder.mkdir()
    (folder / "words.txt").write_text("from the folder")
    (tmp_path / "job.yaml").write_text("name: brings-code\ncode: trainer\ncommand: [cat, words.txt]\n")
    done = ran(tmp_path, "demo", "--nodes", "1", str(tmp_path / "job.yaml"))
    assert done.returncode == 0, done.stderr
    assert "[0] from the folder" in done.stdout


def test_a_job_is_refused_whose_code_the_depot_does_not_have(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(f"name: lost\ncode: {{tree: {'ab' * 32}, size: 10}}\ncommand: ['true']\n")
    with started(tmp_path, *UP) as program:
        read_until(program, "Ctrl-C stops all of it")
        done = ran(tmp_path, "submit", "-f", str(tmp_path / "job.yaml"))
        program.send_signal(signal.SIGINT)
        assert program.wait(LIMIT) == 0
    assert done.returncode == ExitCode.USAGE
    assert f"code: the depot does not have the tree {'ab' * 32}" in done.stderr


def companion_of(program: "subprocess.Popen[str]", name: str) -> psutil.Process:
    children = psutil.Process(program.pid).children()
    return next(each for each in children if f"coordinator.{name}" in each.cmdline())


@pytest.mark.parametrize("name", ["relay", "depot"])
def test_up_has_a_relay_and_a_depot_and_another_at_the_same_address_after_one_was_killed(
    tmp_path: Path, name: str
) -> None:
    log = tmp_path / "local" / f"{name}.log"
    with started(tmp_path, *UP) as program:
        read_until(program, "Ctrl-C stops all of it")
        killed = companion_of(program, name)
        killed.kill()
        psutil.wait_procs([killed], LIMIT)
        with subprocess.Popen(["tail", "-n", "+1", "-f", log], stdout=subprocess.PIPE, text=True) as said:
            assert said.stdout is not None
            served = list(first_two_addresses(said.stdout))
            said.terminate()
        assert served[0] == served[1]
        assert companion_of(program, name).pid != killed.pid
        assert ran(tmp_path, "nodes").returncode == 0
        program.send_signal(signal.SIGINT)
        assert program.wait(LIMIT) == 0
    assert not psutil.pid_exists(killed.pid)


def first_two_addresses(lines: Iterator[str]) -> Iterator[str]:
    """The first two addresses at which one program served."""
    return islice((line.rpartition("address=")[2] for line in lines if " serves address=" in line), 2)
