"""The program inside an execution starts the tasks of a step on its node, and ends them together."""

import os
import shutil
import signal
import subprocess

import pytest

from tests.contract.door_side import ANSWER_LIMIT, DoorSide, program


def tasks(door: DoorSide, *words: str, first: int = 0, count: int = 2, labels: int = 0) -> subprocess.Popen[bytes]:
    """Tasks of a step with a process group of their own, as the companion starts a command."""
    path = door.directory / "muster-inside"
    shutil.copy(program(), path)
    numbers = (str(first), str(count), str(labels), "0")
    started = subprocess.Popen(
        (str(path), "tasks", *numbers, *words),
        env={"PATH": os.defpath},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    door.programs.append(started)
    return started


def test_each_task_of_a_step_knows_its_numbers_and_its_lines_are_whole(door: DoorSide) -> None:
    line = "echo $SLURM_PROCID $SLURM_LOCALID; echo to errors >&2; printf tail"
    output, errors = tasks(door, "sh", "-c", line, first=4, labels=1).communicate(timeout=ANSWER_LIMIT)
    assert sorted(output.splitlines()) == [b"4: 4 0", b"4: tail", b"5: 5 1", b"5: tail"]
    assert sorted(errors.splitlines()) == [b"4: to errors", b"5: to errors"]


def test_long_output_of_tasks_is_told_line_by_line(door: DoorSide) -> None:
    output, _ = tasks(door, "seq", "100000", labels=1).communicate(timeout=ANSWER_LIMIT)
    told = [b"%d: %d" % (task, number) for task in range(2) for number in range(1, 100001)]
    assert sorted(output.splitlines()) == sorted(told)


def test_a_task_that_fails_ends_the_others_of_its_node(door: DoorSide) -> None:
    step = tasks(door, "sh", "-c", "[ $SLURM_PROCID = 3 ] && exit 7; sleep 600", count=100)
    step.communicate(timeout=ANSWER_LIMIT)
    assert step.returncode == 7


def test_what_a_task_that_fails_leaves_behind_is_ended_too(door: DoorSide) -> None:
    step = tasks(door, "sh", "-c", "sleep 600 & exit 7", count=1)
    step.communicate(timeout=ANSWER_LIMIT)
    assert step.returncode == 7


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_for_the_group_ends_all_tasks(door: DoorSide, number: signal.Signals) -> None:
    step = tasks(door, "sh", "-c", "echo up; exec sleep 600")
    assert step.stdout is not None
    assert [step.stdout.readline() for _ in range(2)] == [b"up\n"] * 2
    os.killpg(step.pid, number)
    step.communicate(timeout=ANSWER_LIMIT)
    assert step.returncode == 128 + number


@pytest.mark.parametrize(
    ("word", "code", "said"),
    [("no-such-program", 127, b"srun: no-such-program: not found"), ("/etc/passwd", 126, b"cannot be run")],
)
def test_a_task_that_cannot_run_says_so(door: DoorSide, word: str, code: int, said: bytes) -> None:
    step = tasks(door, word, count=1)
    assert said in step.communicate(timeout=ANSWER_LIMIT)[1]
    assert step.returncode == code
