"""`srun` inside a job starts its tasks as Slurm does, in every shell that an image may have as /bin/sh."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.unit.agent.core.slurm_job import SlurmJob

ABOUT_ME = 'echo "$SLURM_PROCID/$SLURM_NTASKS $SLURM_LOCALID $SLURM_NODEID/$SLURM_NNODES on $SLURMD_NODENAME"'


def test_every_process_of_the_job_is_a_task(slurm: SlurmJob) -> None:
    told = [f"{task}/6 {task % 2} {task // 2}/3 on n{task // 2}" for task in range(6)]
    assert slurm.lines("sh", "-c", ABOUT_ME) == told


@pytest.mark.parametrize(
    ("words", "nodes"),
    [
        (("-n", "2"), "01"),
        (("-n4",), "0012"),
        (("--ntasks=7",), "0001122"),
        (("-N1",), "00"),
        (("-N", "2", "-n", "3"), "001"),
        (("--ntasks-per-node=1",), "012"),
        (("--nodes=2", "--ntasks-per-node", "3"), "000111"),
        (("-w", "n[1-2]"), "1122"),
        (("--mpi=pmix", "-l", "--cpu-bind=none", "-c", "4", "-n", "1", "--"), "0"),
    ],
)
def test_tasks_are_shared_out_as_asked(slurm: SlurmJob, words: tuple[str, ...], nodes: str) -> None:
    found = [
        line.rpartition(": ")[2] for line in slurm.lines(*words, "sh", "-c", "echo $SLURM_PROCID $SLURMD_NODENAME")
    ]
    assert found == [f"{task} n{node}" for task, node in enumerate(nodes)]


@pytest.mark.parametrize(
    ("visible", "found"), [({}, ["0 0,1", "1 2,3"]), ({"CUDA_VISIBLE_DEVICES": "b,c,d,e"}, ["0 b,c", "1 d,e"])]
)
def test_each_task_sees_its_gpus(slurm: SlurmJob, visible: Mapping[str, str], found: list[str]) -> None:
    words = ("-N1", "--gpus-per-task=2", "sh", "-c", "echo $SLURM_PROCID $CUDA_VISIBLE_DEVICES")
    assert slurm.lines(*words, SLURM_GPUS_ON_NODE="4", **visible) == found


def test_tasks_that_want_more_gpus_than_there_are_do_not_start(slurm: SlurmJob) -> None:
    done = slurm.run("srun", "-N1", "--gpus-per-task=2", "echo", "started", SLURM_GPUS_ON_NODE="3")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "srun: 2 tasks of n0 with 2 GPUs each are more than its 3 GPUs\n"


def test_executions_may_have_different_numbers_of_processes(tmp_path: Path) -> None:
    found = SlurmJob(tmp_path, ["sh"], "1,3(x2)").lines("sh", "-c", "echo $SLURM_PROCID $SLURMD_NODENAME")
    assert found == ["0 n0", "1 n1", "2 n1", "3 n1", "4 n2", "5 n2", "6 n2"]


def test_steps_are_counted(slurm: SlurmJob) -> None:
    assert [slurm.lines("-n1", "sh", "-c", "echo $SLURM_STEP_ID") for _ in range(3)] == [["0"], ["1"], ["2"]]


def test_labels_tell_whose_line_it_is_on_both_outputs(slurm: SlurmJob) -> None:
    done = slurm.run("srun", "-l", "-n2", "sh", "-c", "echo out; echo err >&2")
    assert sorted(done.stdout.splitlines()) == ["0: out", "1: out"]
    assert sorted(done.stderr.splitlines()) == ["0: err", "1: err"]


def test_the_first_task_has_the_input(slurm: SlurmJob) -> None:
    done = slurm.run("srun", "-l", "-n2", "cat", stdin="one\ntwo\n")
    assert (done.stdout, done.returncode) == ("0: one\n0: two\n", 0)


@pytest.mark.parametrize("words", [(), ("-l",)])
def test_a_task_that_fails_ends_the_others_and_gives_the_exit_code(slurm: SlurmJob, words: tuple[str, ...]) -> None:
    script = "[ $SLURM_PROCID != 4 ] || exit 7; exec sleep 1000"
    assert slurm.run("srun", *words, "sh", "-c", script).returncode == 7


def test_tasks_have_the_variables_of_the_caller_but_those_of_their_execution(slurm: SlurmJob) -> None:
    found = slurm.lines("-n3", "sh", "-c", 'echo "$MUSTER_RANK $WORDS"', WORDS="it's\n two")
    assert found == [" two"] * 3 + ["0 it's", "1 it's", "2 it's"]
    assert slurm.lines("-n1", "--export=NONE", "sh", "-c", "echo $SLURM_PROCID") == ["0"]


def test_tasks_run_where_the_caller_stands(slurm: SlurmJob) -> None:
    below = slurm.work / "below"
    below.mkdir()
    slurm.stands_in = below
    assert slurm.run("srun", "-n1", "pwd").stdout == f"{below}\n"
    assert slurm.run("srun", "-n1", "-D", "/", "pwd").stdout == "/\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "no program to run"),
        (("--pty", "sh"), "the option --pty is not known inside a job; docs/dialects.md lists those that are"),
        (("-n", "none", "true"), "-n wants a number of 1 or more, not 'none'"),
        (("-n",), "-n wants a value"),
        (("-N", "4", "true"), "--nodes: there are 3 nodes, not 4"),
        (("-w", "n9", "true"), "n9 is no node of this job"),
        (("--ntasks-per-node=1", "-n", "4", "true"), "4 tasks are more than 1 on each of 3 nodes"),
        (("--export=A=1", "true"), "only --export=ALL and --export=NONE are known, not --export=A=1"),
    ],
)
def test_what_cannot_be_done_is_said(slurm: SlurmJob, words: tuple[str, ...], said: str) -> None:
    done = slurm.run("srun", *words)
    assert (done.returncode, done.stderr) == (1, f"srun: {said}\n")


def test_a_job_without_commands_is_told_what_its_file_wants(slurm: SlurmJob) -> None:
    done = slurm.run("srun", "true", MUSTER_DOOR="")
    assert (done.returncode, done.stderr) == (
        1,
        "srun: the job's file wants 'gang_commands: true', or 'framework: mpi'\n",
    )
