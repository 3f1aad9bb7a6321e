"""Directories of executions: nobody sees in one whether it was made before it was needed, and nothing is used twice."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from agent.executions.directories import KEPT, SPARES, WORKER_MODULE, ExecutionDirectories
from agent.executions.files import write_config, write_inline
from agent.executions.layout import ExecutionDirectory
from agent.executions.record import ExecutionRecord, noted
from agent.executions.trees import remove_tree
from agent.executions.whole_file import write_unseen
from agent.runtimes.process.record import read_record
from muster import worker
from muster.domain.gangs.plan import Launch
from muster.domain.gangs.roster import CONFIG_FILES
from muster.domain.ids import ExecutionId
from muster.domain.jobs.job import InlineFile

RECORD = ExecutionRecord(job="j", attempt=1, rank=0, address="10.0.0.1")
WITH_FILES = Launch(env={}, config_files=dict.fromkeys(CONFIG_FILES, b"content"))


@pytest.fixture
def directories(tmp_path: Path) -> ExecutionDirectories:
    directories = ExecutionDirectories(tmp_path / "executions", tmp_path / "outputs")
    directories.begin()
    return directories


def made_in(directories: ExecutionDirectories, number: int = 0) -> ExecutionDirectory:
    """One that is made; the first ones are spares."""
    it = ExecutionDirectory(directories.path, ExecutionId(f"j-1-{number}"))
    if not directories.take_spare(it, RECORD):
        directories.make(it, RECORD)
    return it


def spares(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "spares").glob("*"))


def modes(it: ExecutionDirectory) -> dict[str, int]:
    return {str(path.relative_to(it.path)): path.stat().st_mode for path in sorted(it.path.rglob("*"))}


@pytest.mark.parametrize("number", [0, SPARES])
def test_a_directory_has_its_directories_and_tells_whose_it_is(directories: ExecutionDirectories, number: int) -> None:
    made = [made_in(directories, each) for each in range(number + 1)][-1]
    assert [list(directory.iterdir()) for directory in (made.work, made.outputs)] == [[], []]
    assert noted(made) == RECORD
    write_config(made, WITH_FILES)
    found = {path.name: path.read_bytes() for path in made.config.iterdir()}
    assert found.pop(WORKER_MODULE) == Path(worker.__file__).read_bytes()
    assert found == dict.fromkeys(CONFIG_FILES, b"content")


def test_directories_that_were_made_before_have_the_same_rights_as_others(directories: ExecutionDirectories) -> None:
    made = [made_in(directories, number) for number in range(SPARES + 1)]
    for each in made:
        write_config(each, WITH_FILES)
        write_unseen(each.log, b"", 0o600)
    first, last = modes(made[0]), modes(made[-1])
    files = dict.fromkeys(("process.json", "cgroups.json"), stat.S_IFREG | 0o600)
    of_processes = {"bell": stat.S_IFIFO | 0o600, **files}  # who needs them makes them where they are not there
    assert first == last | of_processes


def test_in_a_new_directory_nothing_was_started(directories: ExecutionDirectories) -> None:
    assert [read_record(made_in(directories, number).path) for number in range(SPARES + 1)] == [None] * (SPARES + 1)


def test_what_was_made_before_becomes_the_directory_and_nobody_gets_to_it_until_then(
    directories: ExecutionDirectories, tmp_path: Path
) -> None:
    before = {path.stat().st_ino for path in spares(tmp_path)}
    assert stat.S_IMODE((tmp_path / "spares").stat().st_mode) == 0o700
    made = [made_in(directories, number) for number in range(SPARES)]
    assert {each.path.stat().st_ino for each in made} == before
    assert spares(tmp_path) == []


def test_a_directory_that_was_cleared_is_nobody_elses_afterwards(directories: ExecutionDirectories) -> None:
    held = []
    for number in range(SPARES + 2):
        used = made_in(directories, number)
        held += [os.open(directory, os.O_RDONLY) for directory in (used.path, used.config, used.work, used.outputs)]
        directories.clear(used)
    try:
        for number in range(KEPT):
            later = made_in(directories, number)
            for directory in (later.path, later.config, later.work, later.outputs):
                (directory / "file").touch()
        assert [os.listdir(descriptor) for descriptor in held] == [[]] * len(held)  # noqa: PTH208 (what is open)
    finally:
        for descriptor in held:
            os.close(descriptor)


def test_clearing_removes_whatever_is_there_but_keeps_outputs(
    directories: ExecutionDirectories, tmp_path: Path
) -> None:
    used = made_in(directories)
    (used.work / "deep" / "deeper").mkdir(parents=True)
    (used.work / "deep" / "file").write_text("of the job")
    (used.path / "home").mkdir()
    (used.outputs / "model").write_text("42")
    directories.clear(used)
    assert list(directories.path.iterdir()) == []
    assert [(path.name, path.read_text()) for path in (tmp_path / "outputs" / used.path.name).iterdir()] == [
        ("model", "42")
    ]


def test_clearing_twice_is_harmless(directories: ExecutionDirectories) -> None:
    used = made_in(directories)
    directories.clear(used)
    directories.clear(used)
    assert list(directories.path.iterdir()) == []


def test_there_are_never_more_spare_directories_than_a_few(directories: ExecutionDirectories, tmp_path: Path) -> None:
    for each in [made_in(directories, number) for number in range(2 * KEPT)]:
        directories.clear(each)
    assert len(spares(tmp_path)) == KEPT


def test_an_agent_does_away_with_the_spare_directories_of_the_one_before(
    directories: ExecutionDirectories, tmp_path: Path
) -> None:
    directories.clear(made_in(directories))
    before = {path.stat().st_ino: os.open(path, os.O_RDONLY) for path in spares(tmp_path)}
    try:
        ExecutionDirectories(directories.path, tmp_path / "outputs").begin()
        assert len(spares(tmp_path)) == SPARES
        assert before.keys().isdisjoint(path.stat().st_ino for path in spares(tmp_path))
    finally:
        for descriptor in before.values():
            os.close(descriptor)


def test_an_agent_that_ends_leaves_no_spare_directories(directories: ExecutionDirectories, tmp_path: Path) -> None:
    directories.close()
    assert not (tmp_path / "spares").exists()


def test_a_directory_is_made_at_once_where_there_can_be_no_spare_ones(tmp_path: Path) -> None:
    (tmp_path / "spares").write_text("in the way")
    directories = ExecutionDirectories(tmp_path / "executions", tmp_path / "outputs")
    directories.begin()
    assert noted(made_in(directories)) == RECORD


def test_a_directory_that_is_there_already_is_used_as_it_is(directories: ExecutionDirectories) -> None:
    (directories.path / "j-1-0" / "work").mkdir(parents=True)
    (directories.path / "j-1-0" / "work" / "file").write_text("left")
    assert [path.name for path in made_in(directories).work.iterdir()] == ["file"]


def test_what_is_written_over_is_all_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for content, mode in ((b"longer than that", 0o600), (b"short", 0o644), (b"", 0o644)):
        write_unseen(path, content, mode)
        assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (content, mode)


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic"):
        write_unseen(tmp_path / "link", b"content", 0o600)
    assert not (tmp_path / "elsewhere").exists()


def test_a_directory_is_cleared_however_deep_the_directories_are_that_user_code_made(
    directories: ExecutionDirectories,
) -> None:
    it = made_in(directories)
    dig = "import os\nfor _ in range(3000): os.mkdir('deep'); os.chdir('deep')"
    subprocess.run([sys.executable, "-c", dig], cwd=it.work, check=True)
    directories.clear(it)
    assert not it.path.exists()


def test_files_are_written_however_deep_their_directories_are(tmp_path: Path) -> None:
    path = "a/" * 1500 + "file"
    write_inline((InlineFile(path=path, content=b"x"),), tmp_path)
    assert (tmp_path / path).read_bytes() == b"x"
    remove_tree(tmp_path / "a")
