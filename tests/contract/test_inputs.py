"""Inputs in every runtime: what user code finds, and that nobody can write to it."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from agent.data.cache import InputCache
from agent.executions.inputs import link_inputs, note_inputs
from agent.executions.owner import let_through
from agent.logs.spool import LogSpool
from muster.domain.data.job_input import FoundInput, JobInput
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.frameworks.dialect import Dialect
from muster.domain.jobs.job import Role
from tests.contract.runtime_places import PLACES, place_of
from tests.contract.runtimes import (
    Place,
    Trial,
    assignment_for,
    directory_for,
    ignored,
    launch_for,
    shell,
)

URL = "https://example.org/words.txt"
WRITES = 'echo two > "$I/words/words.txt" || echo two > "$I/words/more" || rm -f "$I/words/words.txt"'


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return place_of(request, tmp_path)


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Where other users get to as well; pytest's own is closed to them."""
    with TemporaryDirectory(dir="/var/tmp", prefix="muster-test-") as directory:
        Path(directory).chmod(0o711)
        yield Path(directory)


def kept(directory: Path, execution: str) -> tuple[Path, Path]:
    """A file that the node has for an execution: the directory that shows it, and the file."""
    cache = InputCache(directory / "cache" / "inputs", directory / "executions", keep_free=0)
    with closing(cache.part(URL)) as part:
        part.begin_anew('"1"')
        part.write(b"one\n")
        found = FoundInput(url=URL, size=part.offset, sha256=part.sha256, version=part.version)
        cache.take(part, found, execution)
    shown = cache.shown("words.txt", found)
    return shown, shown / "words.txt"


@asynccontextmanager
async def with_input(
    place: Place, directory: Path, script: str, *dialects: Dialect, seen: str = "/muster/inputs"
) -> AsyncIterator[Trial]:
    """A script that finds its inputs below $I."""
    async with place.runtime() as runtime:
        role = Role(command=shell(script), inputs=(JobInput(name="words", url=URL),), image=place.image)
        assignment = replace(assignment_for(role), dialects=dialects)
        own = directory_for(directory, assignment.execution)
        let_through(own)
        shown, _ = kept(directory, assignment.execution)
        (note_inputs if place.image else link_inputs)(own, {"words": shown})
        with closing(LogSpool(own.log)) as spool:
            sandbox = await runtime.prepare(assignment, own, spool, (), ignored)
            try:
                launch = launch_for(assignment)
                found = seen if place.image else str(own.inputs)
                launch = replace(launch, env={**launch.env, "I": found})
                yield Trial(sandbox, spool, own, launch)
            finally:
                await sandbox.remove()


async def test_user_code_finds_the_file_of_its_input(place: Place, tmp_path: Path) -> None:
    async with with_input(place, tmp_path, 'cat "$I/words/words.txt"; ls "$I/words"') as it:
        assert await it.run() == Exit(code=0)
        assert it.printed() == [b"one", b"words.txt"]


async def test_user_code_finds_it_where_valohai_has_it(place: Place, tmp_path: Path) -> None:
    async with with_input(place, tmp_path, 'cat "$I/words/words.txt"', Dialect.VALOHAI, seen="/valohai/inputs") as it:
        assert await it.run() == Exit(code=0)
        assert it.printed() == [b"one"]


async def test_user_code_that_is_not_the_agents_user_cannot_change_an_input(place: Place, tmp_path: Path) -> None:
    async with with_input(place, tmp_path, f"[ $(id -u) = 0 ] && exit 1; {WRITES}") as it:
        assert (await it.run()).code != 0
        _, file = kept(tmp_path, it.directory.path.name)
        assert file.read_bytes() == b"one\n"
