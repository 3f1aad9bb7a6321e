"""One coordinator for one state directory."""

import fcntl
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from coordinator.store.directory import DirectoryInUseError, StateDirectory
from coordinator.store.store import StoreError

ROOT = Path(__file__).parents[2]

HOLD = (
    "import sys; from pathlib import Path; from coordinator.store.directory import StateDirectory\n"
    "with StateDirectory(Path(sys.argv[1])).lock():\n"
    "    print('held', flush=True)\n"
    "    sys.stdin.read()\n"
)


def test_the_directory_is_made_for_its_user_only(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path / "var" / "muster")

    with directory.lock():
        assert stat.S_IMODE(directory.path.stat().st_mode) == 0o700

    assert directory.database == tmp_path / "var" / "muster" / "coordinator.db"
    assert directory.logs == tmp_path / "var" / "muster" / "logs"


@pytest.mark.parametrize("mode", [0o755, 0o777])
def test_a_directory_that_others_can_use_is_closed_with_all_that_is_in_it(tmp_path: Path, mode: int) -> None:
    directory = StateDirectory(tmp_path / "state")
    (directory.path / "trust").mkdir(parents=True, mode=0o755)
    for name in ("coordinator.db", "coordinator.db-wal", "fleet.key", "admin-token", "trust/authority.key"):
        (directory.path / name).touch(mode=0o644)
    directory.path.chmod(mode)

    with directory.lock():
        found = {
            str(path.relative_to(directory.path)): stat.S_IMODE(path.stat().st_mode)
            for path in directory.path.rglob("*")
        }

    assert stat.S_IMODE(directory.path.stat().st_mode) == 0o700
    assert found.pop("trust") == 0o700
    assert set(found.values()) == {0o600}


def test_a_directory_of_other_things_is_not_closed_but_refused(tmp_path: Path) -> None:
    (tmp_path / "somebody's").mkdir()
    tmp_path.chmod(0o755)

    with pytest.raises(StoreError, match="holds other things than a coordinator's state"):
        StateDirectory(tmp_path).lock().__enter__()

    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def test_a_second_coordinator_is_told_who_has_it_until_that_is_gone(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path / "state")
    command = [sys.executable, "-c", HOLD, str(directory.path)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"

        with pytest.raises(
            DirectoryInUseError, match=f"in use by the coordinator with process id {holder.pid}"
        ) as fault:
            directory.lock().__enter__()
        holder.kill()

    assert fault.value.pid == holder.pid
    with directory.lock():
        assert (directory.path / "coordinator.lock").read_text() == f"{os.getpid()}\n"


def test_the_secret_of_the_fleet_is_made_once_and_for_its_user_only(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path / "state")
    with directory.lock():
        key = directory.fleet_key()
        assert stat.S_IMODE((directory.path / "fleet.key").stat().st_mode) == 0o600
    with directory.lock():
        assert directory.fleet_key() == key

    assert len(key) == 32
    with StateDirectory(tmp_path / "other").lock():
        assert StateDirectory(tmp_path / "other").fleet_key() != key


def test_a_secret_that_was_cut_short_is_not_used(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path)
    with directory.lock():
        (directory.path / "fleet.key").write_bytes(b"short")
        with pytest.raises(StoreError, match=r"fleet\.key does not hold the 32 bytes of a key: put a backup"):
            directory.fleet_key()


def test_two_in_one_process_are_kept_apart_too(tmp_path: Path) -> None:
    with StateDirectory(tmp_path).lock(), pytest.raises(DirectoryInUseError), StateDirectory(tmp_path).lock():
        pass

    with StateDirectory(tmp_path).lock():
        pass


def test_a_holder_that_has_not_said_who_it_is_keeps_others_out(tmp_path: Path) -> None:
    with (tmp_path / "coordinator.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        with pytest.raises(DirectoryInUseError, match="in use by another coordinator: stop that one"):
            StateDirectory(tmp_path).lock().__enter__()


def test_a_path_that_is_a_file_is_a_clear_fault(tmp_path: Path) -> None:
    file = tmp_path / "state"
    file.write_text("")

    with pytest.raises(StoreError, match=r"state directory .*/state cannot be used: File exists"):
        StateDirectory(file).lock().__enter__()
