"""What the executions of an interactive job run, in the place of a command and before it."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from agent.core.launching.launch import launch
from agent.core.launching.main_program import SETUP_FAILED, setup_words
from agent.core.launching.site import LaunchSite
from muster.domain.gangs.plan import Assignment
from muster.domain.jobs.frameworks.framework import Framework, FrameworkName
from muster.domain.jobs.interactive import Interactive
from muster.domain.jobs.job import Role
from tests.unit.agent.core.ledger_builders import assignment, roster

SITE = LaunchSite(config="/c", outputs="/o", programs="/c/bin", inside="/c/bin/muster-inside")
WAITS = ("/c/bin/muster-inside", "wait")


def runs(who: Assignment) -> Role | None:
    return launch(who, roster(), SITE).role


def dev(role: Role, setup: str = "") -> Assignment:
    return assignment(role=role, interactive=Interactive(setup=setup))


def test_without_a_command_the_main_program_waits_and_no_entrypoint_of_the_image_runs() -> None:
    process, container = runs(dev(Role())), runs(dev(Role(image="torch:2")))
    assert process is not None
    assert container is not None
    assert (process.entrypoint, process.command) == (None, WAITS)
    assert (container.entrypoint, container.command) == ((), WAITS)


def test_a_command_runs_as_in_any_other_job() -> None:
    assert runs(dev(Role(command=("serve",)))) is None


def test_a_job_that_is_not_interactive_never_waits() -> None:
    assert runs(assignment(role=Role(image="torch:2"))) is None


@pytest.mark.parametrize(("image", "entrypoint"), [(None, None), ("torch:2", None), ("torch:2", ("tini",))])
def test_a_setup_comes_before_the_command(image: str | None, entrypoint: tuple[str, ...] | None) -> None:
    who = dev(Role(image=image, entrypoint=entrypoint, command=("serve", "-v")), "pip install x")
    role, words = runs(who), setup_words(who, SITE)

    assert role is not None
    assert words[-2:] == ("pip install x", f"/o/{SETUP_FAILED}")
    assert role.command == (*words, *(entrypoint or ()), "serve", "-v")
    assert role.entrypoint == (None if entrypoint is None else ())


def test_it_comes_before_what_waits_for_rank_0_of_mpi_as_well() -> None:
    mpi = Framework(name=FrameworkName.MPI)
    first, second = (
        runs(replace(dev(Role(count=2), "true"), rank=rank, framework=mpi, gang_commands=True)) for rank in (0, 1)
    )
    assert first is not None
    assert second is not None
    assert first.command == second.command
    assert first.command[-2:] == WAITS


def ran(directory: Path, setup: str, *command: str) -> "subprocess.CompletedProcess[bytes]":
    """A command behind a setup, run as an execution would run it."""
    site = replace(SITE, outputs=str(directory))
    words = setup_words(dev(Role(command=command), setup), site)
    return subprocess.run(
        [*words, *command], capture_output=True, check=False, env={"code": "mine", "PATH": "/usr/bin:/bin"}
    )


def test_the_main_program_takes_the_place_of_the_setup_with_its_own_words_and_variables(tmp_path: Path) -> None:
    script = "code=1; cd /; exit 0"
    ended = ran(tmp_path, script, "sh", "-c", 'echo "$code $0 $#"; pwd; exit 5', "$HOME 'x'", "a b", "")

    assert (ended.returncode, ended.stderr) == (5, b"")
    assert ended.stdout.decode().splitlines() == ["mine $HOME 'x' 2", str(Path.cwd())]
    assert not (tmp_path / SETUP_FAILED).exists()


@pytest.mark.parametrize(("script", "code"), [("exit 3", 3), ("kill -9 $$", 137), ("no-such-program", 127), ("(", 2)])
def test_a_setup_that_fails_leaves_its_mark_and_its_code_and_the_main_program_is_not_run(
    tmp_path: Path, script: str, code: int
) -> None:
    ended = ran(tmp_path, script, "echo", "main")

    assert (ended.returncode, ended.stdout) == (code, b"")
    assert ended.stderr.decode().endswith(f"muster: interactive.setup ended with exit code {code}\n")
    assert (tmp_path / SETUP_FAILED).read_text() == f"{code}\n"


def test_a_setup_that_fails_where_nothing_can_be_written_ends_with_its_code_all_the_same(tmp_path: Path) -> None:
    assert ran(tmp_path / "gone", "exit 3", "echo").returncode == 3
