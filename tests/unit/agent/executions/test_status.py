"""What user code tells its agent is believed within limits, as anybody may write there."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent.executions.layout import CHECKPOINTS, ExecutionDirectory
from agent.executions.status import last_checkpoint
from muster.domain.ids import ExecutionId

NOW = datetime(2026, 11, 25, 9, 30, tzinfo=UTC)


@pytest.fixture
def directory(tmp_path: Path) -> ExecutionDirectory:
    made = ExecutionDirectory(tmp_path, ExecutionId("j-1-0"))
    made.status.mkdir(parents=True)
    return made


def told(directory: ExecutionDirectory, at: datetime) -> None:
    file = directory.status / CHECKPOINTS
    file.touch()
    os.utime(file, (at.timestamp(), at.timestamp()))


def test_nothing_was_saved_before_user_code_says_so(directory: ExecutionDirectory) -> None:
    assert last_checkpoint(directory, NOW) is None


def test_the_time_of_the_file_counts(directory: ExecutionDirectory) -> None:
    told(directory, NOW - timedelta(minutes=1))
    assert last_checkpoint(directory, NOW) == NOW - timedelta(minutes=1)


def test_a_checkpoint_of_tomorrow_is_one_of_now(directory: ExecutionDirectory) -> None:
    told(directory, NOW + timedelta(days=1))
    assert last_checkpoint(directory, NOW) == NOW


def test_a_checkpoint_from_before_there_were_computers_is_one_of_their_first_day(directory: ExecutionDirectory) -> None:
    told(directory, datetime(1969, 1, 1, tzinfo=UTC))
    assert last_checkpoint(directory, NOW) == datetime(1970, 1, 1, tzinfo=UTC)


def test_a_link_and_a_directory_tell_nothing(directory: ExecutionDirectory) -> None:
    (directory.status / CHECKPOINTS).symlink_to("/etc/hostname")
    assert last_checkpoint(directory, NOW) is None
    (directory.status / CHECKPOINTS).unlink()
    (directory.status / CHECKPOINTS).mkdir()
    assert last_checkpoint(directory, NOW) is None
