"""The coordinator's state directory: what lies in it, and that only one coordinator uses it."""

import fcntl
import logging
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from coordinator.store.store import StoreError

log = logging.getLogger(__name__)


class DirectoryInUseError(StoreError):
    """Another coordinator runs on this state directory."""

    def __init__(self, directory: Path, pid: int | None) -> None:
        holder = f"the coordinator with process id {pid}" if pid else "another coordinator"
        super().__init__(f"{directory} is in use by {holder}: stop that one, or name another state directory")
        self.pid = pid


FLEET_SECRET_BYTES = 32
"""Bytes of the secret of a fleet, and of the one of its tickets."""

_OTHERS = 0o077
"""What no mode in a state directory has."""
_OURS = (
    "coordinator.*",
    "depot.known",
    "fleet.*",
    "tickets.*",
    "*-token",
    "logs",
    "bundles",
    "trust",
    "trust/authority.*",
)
"""Files and directories that a coordinator makes; that others may read the keys of secrets has a refusal of its own."""


class StateDirectory:
    """A directory with the database and the logs of one coordinator."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def database(self) -> Path:
        """The SQLite file; beside it lie its `-wal` and `-shm`."""
        return self.path / "coordinator.db"

    @property
    def logs(self) -> Path:
        """The directory of the log store."""
        return self.path / "logs"

    @property
    def bundles(self) -> Path:
        """The directory of the bundles."""
        return self.path / "bundles"

    @property
    def reserve(self) -> Path:
        """The file that keeps room on the disk for deletions."""
        return self.path / "coordinator.reserve"

    @property
    def running(self) -> Path:
        """A file that is there while the database is open, and stays behind where a coordinator was killed."""
        return self.path / "coordinator.running"

    @property
    def depot_known(self) -> Path:
        """A file that is there once a depot was connected: the fleet has one, also while it is away."""
        return self.path / "depot.known"

    def fleet_key(self) -> bytes:
        """The secret of this coordinator's fleet, made at the first start; to be called while the lock is held.

        Raises StoreError where it cannot be read or made.
        """
        return self._secret("fleet.key", "put a backup in its place")

    def ticket_secret(self) -> bytes:
        """The secret of which keys of tickets are made, the same at every start; else like the one of the fleet."""
        return self._secret("tickets.key", "remove it, and another one is made")

    def _secret(self, name: str, remedy: str) -> bytes:
        path = self.path / name
        with _reported(self.path):
            if not path.exists():
                _write_secret(path, secrets.token_bytes(FLEET_SECRET_BYTES))
            key = path.read_bytes()
        if len(key) != FLEET_SECRET_BYTES:
            raise StoreError(f"{path} does not hold the {FLEET_SECRET_BYTES} bytes of a key: {remedy}")
        return key

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Make the directory if need be, and hold it alone; DirectoryInUseError names the process that has it.

        The lock belongs to the process: it is gone when that ends, however it ends.
        """
        with _reported(self.path):
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._keep_others_out()
            # The file is never deleted: a lock on a deleted file would keep nobody out.
            lock = os.open(self.path / "coordinator.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise DirectoryInUseError(self.path, _pid(lock)) from None
            with _reported(self.path):
                os.ftruncate(lock, 0)
                os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
            yield
        finally:
            os.close(lock)

    def _keep_others_out(self) -> None:
        """Close the directory to others, and what an earlier start left open in it."""
        found = self.path.stat()
        if found.st_mode & _OTHERS and not self._is_ours():
            raise StoreError(
                f"{self.path} can be used by others and holds other things than a coordinator's state: name a "
                f"directory of its own, or close this one (`chmod go= {self.path}`)"
            )
        _close_to_others(self.path, found)
        for pattern in _OURS:
            for path in self.path.glob(pattern):
                if not path.is_symlink():
                    _close_to_others(path, path.stat())

    def _is_ours(self) -> bool:
        names = {path.name for path in self.path.iterdir()} - {"lost+found"}
        return not names or not names.isdisjoint({"coordinator.lock", "coordinator.db"})


def _close_to_others(path: Path, found: os.stat_result) -> None:
    """Take all rights from group and others; StoreError where the owner is somebody else."""
    if not found.st_mode & _OTHERS:
        return
    if os.geteuid() not in {0, found.st_uid}:
        raise StoreError(
            f"{path} can be used by others and belongs to another user: give it to the coordinator's user alone "
            f"(`chown`, then `chmod go= {path}`)"
        )
    path.chmod(stat.S_IMODE(found.st_mode) & ~_OTHERS)
    log.warning("closed to other users", extra={"path": str(path), "mode was": f"{stat.S_IMODE(found.st_mode):04o}"})


def _write_secret(path: Path, secret: bytes) -> None:
    """Whole or not at all, for its user only."""
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(secret)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def _pid(lock: int) -> int | None:
    written = os.pread(lock, 20, 0).strip()
    return int(written) if written.isdigit() else None


@contextmanager
def _reported(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"the state directory {directory} cannot be used: {error.strerror}. "
            "Check its owner and free space, or name another one",
        ) from error
