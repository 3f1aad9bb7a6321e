"""The claim of a local fleet on a directory: one `muster up` at a time, which `muster down` finds and ends."""

import fcntl
import json
import os
import select
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from muster.cli.output.screen import say
from muster.domain.errors import ConflictError, UnavailableError

_LOCK = "up.lock"
STOP_LIMIT = 30.0
"""Seconds in which programs end in order, longer than agents give their executions; then they are killed."""
_KILL_LIMIT = 10.0
"""Seconds in which a killed program is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalRun:
    """One run of `muster up` in a directory, as it is noted there."""

    pid: int
    address: str = ""
    """Where clients are served; empty until they are."""
    programs: tuple[int, ...] = ()
    """Process ids of coordinator, agent, relay and depot."""


class Claim:
    """The directory of a local fleet, held by this process."""

    def __init__(self, directory: Path, lock: int) -> None:
        self._directory = directory
        self._lock = lock
        self._run = LocalRun(pid=os.getpid())
        self._write()

    def started(self, pid: int) -> None:
        """Note a program of the fleet."""
        self._run = replace(self._run, programs=(*self._run.programs, pid))
        self._write()

    def ended(self, pid: int) -> None:
        """Note that a program of the fleet has ended, and another one takes its place."""
        self._run = replace(self._run, programs=tuple(each for each in self._run.programs if each != pid))
        self._write()

    def serves(self, address: str) -> None:
        """Note where clients are served."""
        self._run = replace(self._run, address=address)
        self._write()

    def _write(self) -> None:
        text = json.dumps(asdict(self._run)).encode()
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, text, 0)


@contextmanager
def claimed(directory: Path) -> Iterator[Claim]:
    """Hold the directory; ConflictError while another `muster up` has it.

    Programs that an earlier run has left are stopped first. The claim ends with this process, however it ends.
    """
    directory.mkdir(parents=True, exist_ok=True)
    lock = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not _taken(lock):
            run = _read(lock)
            at = f", and serves at {run.address}" if run is not None and run.address else ""
            who = f" as process {run.pid}" if run is not None else ""
            raise ConflictError(f"`muster up` runs in {directory} already{who}{at}; `muster down` ends it")
        left = _programs_of(_read(lock), directory)
        if left:
            say("an earlier `muster up` has left programs behind, which are stopped first", err=True, flush=True)
            _end(left)
        yield Claim(directory, lock)
        os.ftruncate(lock, 0)
    finally:
        os.close(lock)


def end_run(directory: Path) -> LocalRun | None:
    """End what `muster up` runs in a directory, and what it has left there; None where there was nothing.

    Raises UnavailableError where it does not end.
    """
    try:
        lock = os.open(directory / _LOCK, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        run, free = _read(lock), _taken(lock)
        if not free and run is not None:
            _end([run.pid], kill=False)
        left = _programs_of(run, directory)
        _end(left)
        return run if left or not free else None
    finally:
        os.close(lock)


def _taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(lock: int) -> LocalRun | None:
    try:
        found = json.loads(os.pread(lock, 65536, 0))
        return LocalRun(pid=found["pid"], address=found["address"], programs=tuple(found["programs"]))
    except (ValueError, KeyError, TypeError):
        return None


def _programs_of(run: LocalRun | None, directory: Path) -> Sequence[int]:
    """The programs of a run that are still there, told from others that got their process id by the directory."""
    return [pid for pid in (run.programs if run else ()) if str(directory).encode() in _command_line(pid)]


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _end(programs: Sequence[int], *, kill: bool = True) -> None:
    """Have programs end in order, then at once."""
    handles = []
    for pid in programs:
        with suppress(ProcessLookupError):
            handles.append(os.pidfd_open(pid))
    try:
        for handle in handles:
            signal.pidfd_send_signal(handle, signal.SIGTERM)
        left = _left(handles, STOP_LIMIT)
        if left and kill:
            for handle in left:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
            left = _left(left, _KILL_LIMIT)
    finally:
        for handle in handles:
            os.close(handle)
    if left:
        raise UnavailableError(f"what runs does not end (process {', '.join(map(str, programs))}); look at its log")


def _left(handles: Sequence[int], limit: float) -> list[int]:
    """The programs that have not ended in time."""
    left, until = list(handles), time.monotonic() + limit
    while left and (remaining := until - time.monotonic()) > 0:
        ended, _, _ = select.select(left, [], [], remaining)
        left = [each for each in left if each not in ended]
    return left
