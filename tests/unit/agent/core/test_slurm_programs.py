"""`squeue`, `scancel` and `sbcast` inside a job do for that job what Slurm's do, in every shell."""

import pytest

from tests.unit.agent.core.slurm_job import SlurmJob


def test_squeue_tells_of_its_own_job(slurm: SlurmJob) -> None:
    done = slurm.run("squeue")
    title, told = done.stdout.splitlines()
    assert title.split() == ["JOBID", "PARTITION", "NAME", "USER", "ST", "TIME", "NODES", "NODELIST(REASON)"]
    assert told.split()[:3] == ["17", "vision", "train"]
    assert told.split()[4:] == ["R", "INVALID", "3", "n[0-2]"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("-h", "-j", "17", "-o", "%T"), "RUNNING\n"),
        (("--noheader", "--me", "--format=%i|%5j|%.6D|%C"), "17|train|     3|12\n"),
        (("-h", "-o", "%.3j."), "tra.\n"),
        (("-h", "-o", "%T", "-t", "PD"), ""),
        (("-h", "-j18"), ""),
        (("-h", "-n", "train", "-t", "R", "-o", "there"), "there\n"),
    ],
)
def test_squeue_has_the_options_of_scripts(slurm: SlurmJob, words: tuple[str, ...], told: str) -> None:
    done = slurm.run("squeue", *words)
    assert (done.returncode, done.stdout, done.stderr) == (0, told, "")


def test_squeue_knows_how_long_the_command_runs(slurm: SlurmJob) -> None:
    assert slurm.run("batch", "squeue", "-h", "-o", "%M").stdout in {"0:00\n", "0:01\n"}


def test_squeue_says_which_field_it_does_not_know(slurm: SlurmJob) -> None:
    done = slurm.run("squeue", "-o", "%L")
    assert (done.returncode, done.stderr) == (1, "squeue: the field %L is not known inside a job\n")


def test_the_command_ends_with_its_own_exit_code(slurm: SlurmJob) -> None:
    assert slurm.run("batch", "sh", "-c", "exit 7").returncode == 7


def test_scancel_ends_the_command_and_the_program_in_front(slurm: SlurmJob) -> None:
    done = slurm.run("batch", "sh", "-c", "muster-exec 1 scancel 17 & sleep 1000; echo goes on")
    assert (done.returncode, done.stdout) == (143, "")


def test_scancel_lets_a_script_tidy_up(slurm: SlurmJob) -> None:
    script = "trap 'echo tidy; exit 3' TERM; sleep 1000 & scancel 17; wait"
    done = slurm.run("batch", "sh", "-c", script)
    assert (done.returncode, done.stdout) == (3, "tidy\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "which job? This one is 17"),
        (("18",), "job 18 is not this one, which is 17; only this one can be ended"),
        (("--signal=USR1", "17"), "the option --signal=USR1 is not known inside a job"),
    ],
)
def test_scancel_ends_no_other_job(slurm: SlurmJob, words: tuple[str, ...], said: str) -> None:
    done = slurm.run("scancel", *words)
    assert (done.returncode, done.stderr) == (1, f"scancel: {said}\n")


DATA = bytes(range(256)) * 1000


def test_sbcast_copies_to_every_node(slurm: SlurmJob) -> None:
    (slurm.work / "data").write_bytes(DATA)
    (slurm.work / "data").chmod(0o755)
    done = slurm.run("sbcast", "data", str(slurm.directory) + "/", "--force")
    assert (done.returncode, done.stderr) == (0, "")
    copy = slurm.directory / "data"
    assert (copy.read_bytes(), copy.stat().st_mode & 0o111) == (DATA, 0o111)


def test_sbcast_writes_over_nothing_unless_told(slurm: SlurmJob) -> None:
    (slurm.work / "data").write_bytes(DATA)
    there = slurm.directory / "there"
    there.write_text("old")
    done = slurm.run("sbcast", "data", str(there))
    assert done.returncode == 1
    assert f"sbcast: n0: {there} is there already; --force writes over it\n" in done.stderr
    assert there.read_text() == "old"
    assert not list(slurm.directory.glob("there.*"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("data",), "what is to be copied where? sbcast [-f] FILE TARGET"),
        (("none", "/tmp/x"), "none is no file that can be read"),
    ],
)
def test_sbcast_says_what_is_missing(slurm: SlurmJob, words: tuple[str, ...], said: str) -> None:
    done = slurm.run("sbcast", *words)
    assert (done.returncode, done.stderr) == (1, f"sbcast: {said}\n")
