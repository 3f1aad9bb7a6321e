"""The coordinator's program on a state directory of which something is lost, foreign, or copied."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator.store.directory import StateDirectory
from coordinator.store.fleet_row import read_fleet_id
from tests.integration.programs import ROOT, coordinator

LIMIT = 60


def told(*words: str) -> "subprocess.CompletedProcess[str]":
    """What becomes of a call of the coordinator's program."""
    command = [sys.executable, "-m", "coordinator", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT, check=False)


def start(state: Path) -> "subprocess.CompletedProcess[str]":
    """A start that ends as soon as everything is there."""
    return told("--state", str(state), "--init")


def contents(state: Path) -> dict[str, bytes]:
    """Every file below a directory, but for the one that says who runs."""
    files = (path for path in sorted(state.rglob("*")) if path.is_file() and path.name != "coordinator.lock")
    return {str(path.relative_to(state)): path.read_bytes() for path in files}


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A fleet that has begun, and the log of a job."""
    begun = tmp_path / "state"
    assert start(begun).returncode == 0
    (begun / "logs" / "j-1").mkdir(parents=True)
    (begun / "logs" / "j-1" / "1-0.cri").write_bytes(b"2026-11-21T08:48:50.000000000Z stdout F kept\n")
    return begun


def database_gone(state: Path) -> None:
    (state / "coordinator.db").unlink()


def database_empty(state: Path) -> None:
    (state / "coordinator.db").write_bytes(b"")


def log_of_writes_gone(state: Path) -> None:
    """A killed coordinator leaves the file that says that it runs, and the database's `-wal`."""
    (state / "coordinator.running").touch()


def certificate_gone(state: Path) -> None:
    (state / "trust" / "authority.pem").unlink()


def all_keys_gone(state: Path) -> None:
    shutil.rmtree(state / "trust")
    (state / "fleet.key").unlink()


def another_database(state: Path) -> None:
    assert start(state.parent / "other").returncode == 0
    shutil.copy(state.parent / "other" / "coordinator.db", state / "coordinator.db")


@pytest.mark.parametrize(
    ("lose", "problem"),
    [
        (database_gone, "coordinator.db is missing or empty"),
        (database_empty, "coordinator.db is missing or empty"),
        (log_of_writes_gone, "coordinator.db-wal is gone"),
        (certificate_gone, "trust/authority.pem is missing"),
        (all_keys_gone, "fleet.key is missing; trust/authority.pem and trust/authority.key are missing"),
        (another_database, "coordinator.db is of another fleet"),
    ],
)
def test_a_fleet_of_which_something_is_lost_is_refused_and_left_as_it_is(
    state: Path, lose: Callable[[Path], None], problem: str
) -> None:
    lose(state)
    before = contents(state)

    refused = start(state)

    assert refused.returncode == 1
    assert problem in refused.stderr
    assert "Nothing was changed" in refused.stderr
    assert contents(state) == before


def test_a_new_fleet_begins_on_purpose_and_what_was_left_is_put_aside(state: Path) -> None:
    fleet = read_fleet_id(state / "coordinator.db")
    token, authority = (state / "admin-token").read_bytes(), (state / "trust" / "authority.key").read_bytes()
    database_gone(state)

    said = told("start-anew", "--state", str(state))
    again = start(state)

    assert (said.returncode, again.returncode) == (0, 0)
    [aside] = (state / "put-aside").iterdir()
    assert str(aside) in said.stdout
    assert (aside / "admin-token").read_bytes() == token
    assert (aside / "trust" / "authority.key").read_bytes() == authority
    assert (aside / "logs" / "j-1" / "1-0.cri").exists()
    assert read_fleet_id(state / "coordinator.db") not in {fleet, None, ""}
    assert (state / "admin-token").read_bytes() != token


def test_a_copy_is_not_started_beside_its_original(state: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-a", str(state), str(copy)], check=True)

    refused = start(copy)
    assert refused.returncode == 1
    assert f"it is a copy of {state}, which is still there" in refused.stderr
    assert start(state).returncode == 0

    assert told("moved", "--state", str(copy)).returncode == 0
    assert start(copy).returncode == 0


def test_a_directory_that_was_moved_starts_without_a_word(state: Path, tmp_path: Path) -> None:
    moved = state.rename(tmp_path / "moved")
    assert start(moved).returncode == 0

    subprocess.run(["cp", "-a", str(moved), str(tmp_path / "again")], check=True)
    shutil.rmtree(moved)
    assert start(tmp_path / "again").returncode == 0


async def test_logs_of_jobs_that_the_database_does_not_know_are_put_aside(tmp_path: Path) -> None:
    """Such logs are there after the restore of an older database."""
    directory = StateDirectory(tmp_path / "coordinator")
    async with coordinator(tmp_path):
        pass
    (directory.logs / "j-newer").mkdir(parents=True)
    (directory.logs / "j-newer" / "1-0.cri").write_bytes(b"2026-11-21T08:48:50.000000000Z stdout F kept\n")

    async with coordinator(tmp_path):
        pass

    [aside] = (directory.path / "put-aside").iterdir()
    assert (aside / "logs" / "j-newer" / "1-0.cri").read_bytes().endswith(b"kept\n")
    assert list(directory.logs.iterdir()) == []


def test_a_coordinator_that_was_killed_starts_again(tmp_path: Path) -> None:
    state = tmp_path / "state"
    command = [sys.executable, "-m", "coordinator", "--local", "--listen", "127.0.0.1:0", "--state", str(state)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as killed:
        assert killed.stderr is not None
        assert any("coordinator serves" in line for line in killed.stderr)
        killed.kill()
    assert (state / "coordinator.running").exists()
    assert read_fleet_id(state / "coordinator.db")  # looking at it leaves the write-ahead log where it is
    assert (state / "coordinator.db-wal").exists()

    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as again:
        assert again.stderr is not None
        assert any("coordinator serves" in line for line in again.stderr)
        again.terminate()
    assert again.returncode == 0
    assert not (state / "coordinator.running").exists()
