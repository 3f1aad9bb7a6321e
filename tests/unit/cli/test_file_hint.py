"""Which files somebody has forgotten to send along."""

from pathlib import Path

import pytest

from muster.cli.file_hint import forgotten_files
from muster.domain.jobs.job import InlineFile, JobSpec, Role


def spec(*command: str, files: tuple[InlineFile, ...] = ()) -> JobSpec:
    return JobSpec(name="train", roles=(Role(command=command, files=files),))


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/train.py").touch()
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [("python3", "src/train.py"), ("./src/train.py",), ("/bin/sh", "-c", "cd . && python3 src/train.py --lr 1")],
)
def test_a_file_that_a_command_names_and_nobody_sent_is_found(here: Path, command: tuple[str, ...]) -> None:
    assert [Path(word) for word in forgotten_files(spec(*command), [here])] == [Path("src/train.py")]


def test_a_file_may_lie_beside_the_job_file(here: Path) -> None:
    assert forgotten_files(spec("python3", "train.py"), [here, here / "src"]) == ["train.py"]


def test_files_that_were_sent_or_are_not_here_are_not_told(here: Path) -> None:
    sent = InlineFile(path="src/train.py", content=b"")

    assert forgotten_files(spec("python3", "./src/train.py", files=(sent,)), [here]) == []
    assert forgotten_files(spec("python3", "eval.py", "-v", "it's"), [here]) == []
