"""The program in front of user code in a container: who may have it, and where it cannot run."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.core.containers.first import EXIT_NOTE, NO_NOTE
from agent.runtimes.docker.first import bring_first, read_exit_code
from muster.domain.ids import JobId, execution_id
from muster.domain.jobs.failure import Exit
from tests.contract.docker_place import DockerPlace
from tests.contract.docker_trials import assigned, prepared, script
from tests.contract.runtimes import directory_for

NUMBER = "/proc/sys/kernel/randomize_va_space"
"""A file with one digit."""
FIRST = "tr '\\0' ' ' < /proc/1/cmdline; echo; exit 5"


@pytest.fixture
def place(tmp_path: Path, docker_socket: Path) -> DockerPlace:
    return DockerPlace(tmp_path, docker_socket)


@pytest.fixture
def no_programs(tmp_path: Path) -> Iterator[Path]:
    """A directory of a file system that runs no programs."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system")
    directory = tmp_path / "no programs"
    directory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "noexec,size=4m", "tmpfs", directory], check=True)
    yield directory
    subprocess.run(["umount", directory], check=True)


@pytest.mark.docker
@pytest.mark.parametrize("user", [None, "0", "app", "1234:1234"])
async def test_user_code_of_any_user_has_its_exit_code_noted(
    place: DockerPlace, tmp_path: Path, user: str | None
) -> None:
    async with (
        place.runtime(job_user=None) as runtime,
        prepared(runtime, tmp_path, assigned(script(FIRST, user=user))) as it,
    ):
        assert await it.run() == Exit(code=5)
        assert it.printed()[0].startswith(b"/muster/first/muster-first /muster/first/exit ")
        assert read_exit_code(it.directory) == 5


@pytest.mark.docker
async def test_user_code_that_writes_a_note_of_its_own_ends_as_it_does(place: DockerPlace, tmp_path: Path) -> None:
    role = script(f"echo 0 > /muster/first/{EXIT_NOTE}; exit 3")
    async with place.runtime() as runtime, prepared(runtime, tmp_path, assigned(role)) as it:
        assert await it.run() == Exit(code=3)


@pytest.mark.docker
async def test_where_no_programs_run_from_the_agents_directory_docker_brings_its_own(
    place: DockerPlace, no_programs: Path
) -> None:
    async with place.runtime() as runtime, prepared(runtime, no_programs, assigned(script(FIRST))) as it:
        assert await it.run() == Exit(code=5)
        assert not any(b"muster-first" in line for line in it.printed())


def test_there_is_no_note_before_the_end_nor_without_the_program(tmp_path: Path) -> None:
    directory = directory_for(tmp_path, execution_id(JobId("j"), 1, 0))
    assert read_exit_code(directory) is None
    assert not bring_first(directory, "riscv64")
    assert read_exit_code(directory) is None
    assert bring_first(directory, "aarch64")
    assert (directory.first / EXIT_NOTE).read_bytes() == NO_NOTE
    assert read_exit_code(directory) is None


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda note: note.symlink_to(NUMBER)])
def test_what_is_no_file_is_no_note(tmp_path: Path, make: Callable[[Path], None]) -> None:
    directory = directory_for(tmp_path, execution_id(JobId("j"), 1, 0))
    directory.first.mkdir()
    make(directory.first / EXIT_NOTE)
    assert read_exit_code(directory) is None
