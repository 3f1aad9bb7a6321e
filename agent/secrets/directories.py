"""The directories in memory where executions find their secrets, and what must be masked in their logs.

    ROOT/EXECUTION/files/NAME/KEY    one for each value of a secret that an execution gets in a directory
    ROOT/EXECUTION/env/variables     what a container adds to its environment
    ROOT/EXECUTION.masks             what is taken out of its log; for the agent alone

Nothing of it is on a disk: the file system must be one that lives in memory.
"""

import os
import shutil
from collections.abc import Container, Mapping, Sequence
from pathlib import Path

from agent.core.launching.handover import directory_name
from agent.logs.mask import Mask
from agent.mounts import mounts_in
from muster.domain.errors import MusterError
from muster.domain.fleet.secret import Handover
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, FailureKind

IN_MEMORY = frozenset({"tmpfs", "ramfs"})
INSTALLED = Path("/run/muster")
"""What the service manager makes for an agent that is installed."""

VARIABLES = "variables"
_MASKS = ".masks"
_OWN, _MINE, _EVERYBODY = 0o400, 0o700, 0o444
_PASS = 0o711
"""Rights of the directory above: plain processes may run as another user, who passes but sees nothing but its own."""


class NoMemoryDirectoryError(MusterError):
    """There is no directory in memory where it was looked for."""


class SecretDirectories:
    """One for a node; None instead of a root: it has no directory in memory, and `problem` says why."""

    def __init__(self, root: Path | None, problem: str = "") -> None:
        self._root = root
        self._problem = problem

    def check(self) -> None:
        """Raise ExecutionError where no execution can get secrets."""
        if self._root is None:
            message = f"this node has no directory in memory for secrets: {self._problem or 'none was chosen'}"
            raise ExecutionError(FailureKind.RUNTIME, message)

    def files(self, execution: ExecutionId) -> Path:
        """The directory with one for each secret that comes as files."""
        return self._top(execution) / "files"

    def mounts(self, execution: ExecutionId, secrets: Handover) -> Mapping[str, Path]:
        """Directories with secrets, by the paths at which a container sees them."""
        return {
            path: self.files(execution) / directory_name(path, number)
            for number, path in enumerate(sorted(secrets.files))
        }

    def env(self, execution: ExecutionId) -> Path:
        """The directory with the variables."""
        return self._top(execution) / "env"

    def make(self, execution: ExecutionId, secrets: Handover) -> None:
        """Make the directories, which may be mounted from here on, and note what is masked."""
        self.check()
        self.clear(execution)
        top = self._top(execution)
        top.parent.mkdir(parents=True, exist_ok=True)
        top.parent.chmod(_PASS)
        _write(top.with_name(top.name + _MASKS), b"\n".join(Mask.of(secrets.masked).patterns), 0o600)
        top.mkdir(mode=_MINE)
        own = self.mounts(execution, secrets).values()
        for directory in (self.env(execution), self.files(execution), *own):
            directory.mkdir(mode=0o755)
            directory.chmod(0o755)  # whatever the umask says

    def fill(self, execution: ExecutionId, secrets: Handover, reader: int | None) -> None:
        """Write the values for one user into what `make` made; None: for whoever gets there, which is the container."""
        for path, directory in self.mounts(execution, secrets).items():
            for key, value in secrets.files[path].items():
                _give(directory / _file_name(key), value, reader)
        if secrets.env:
            _give(self.env(execution) / VARIABLES, variables(secrets.env), reader)

    def open_to(self, execution: ExecutionId, reader: int) -> None:
        """Let a user of this machine in, as whom plain processes run."""
        if reader != os.geteuid():
            top = self._top(execution)
            os.chown(top, reader, -1)
            for directory in (top.parent, top.parent.parent):  # which can be passed through, but not be read
                directory.chmod(directory.stat().st_mode & 0o7777 | 0o001)

    def mask(self, execution: ExecutionId) -> Mask | None:
        """What is masked in the log of an execution; None: it never got secrets, or nobody knows them any more."""
        if self._root is None:
            return None
        top = self._top(execution)
        try:
            return Mask(top.with_name(top.name + _MASKS).read_bytes().split(b"\n"))
        except FileNotFoundError:
            return None

    def clear(self, execution: ExecutionId) -> None:
        """Nothing of it is left; harmless when repeated."""
        if self._root is None:
            return
        top = self._top(execution)
        shutil.rmtree(top, ignore_errors=True)
        top.with_name(top.name + _MASKS).unlink(missing_ok=True)

    def sweep(self, keep: Container[ExecutionId]) -> None:
        """Clear what belongs to no execution that is there."""
        if self._root is None or not self._root.is_dir():
            return
        for path in self._root.iterdir():
            execution = ExecutionId(path.name.removesuffix(_MASKS))
            if execution not in keep:
                self.clear(execution)

    def _top(self, execution: ExecutionId) -> Path:
        assert self._root is not None, "check comes first"
        return self._root / execution


def variables(env: Mapping[str, bytes]) -> bytes:
    """Variables in the form in which the program that becomes user code reads them."""
    return b"".join(name.encode() + b"=" + value + b"\0" for name, value in env.items())


def memory_directory(given: Path | None, environ: Mapping[str, str]) -> Path:
    """Where secrets may lie: the directory that was chosen, or a usual one. Raises NoMemoryDirectoryError."""
    if given is not None:
        _made(given)
        return given
    problems = []
    for path in _usual(environ):
        try:
            _made(path)
        except NoMemoryDirectoryError as error:
            problems.append(str(error))
        else:
            return path
    raise NoMemoryDirectoryError("; ".join(problems))


def _usual(environ: Mapping[str, str]) -> Sequence[Path]:
    """Only directories that nobody else can have made: not those whose names are free for everybody to take."""
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    own = [INSTALLED / "secrets"] if os.access(INSTALLED, os.W_OK) else []
    if runtime.startswith("/"):
        own.append(Path(runtime) / "muster" / "secrets")
    return [*own, Path(f"/dev/shm/muster-{os.geteuid()}/secrets")]  # noqa: S108 (whose it is gets checked)


def _made(directory: Path) -> None:
    """Make it, if it is not there; raises NoMemoryDirectoryError if it is no place for secrets."""
    try:
        directory.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        directory.mkdir(mode=_MINE, exist_ok=True)
        found = directory.lstat()
    except OSError as error:
        raise NoMemoryDirectoryError(f"{directory} cannot be made: {error.strerror}") from error
    kind = _file_system(found.st_dev)
    if kind not in IN_MEMORY:
        raise NoMemoryDirectoryError(
            f"{directory} lies on {kind}, not in memory; --secrets-dir names a directory on a tmpfs or ramfs"
        )
    if directory.is_symlink() or {found.st_uid, directory.parent.lstat().st_uid} - {os.geteuid(), 0}:
        raise NoMemoryDirectoryError(f"{directory} belongs to another user of this machine")
    if found.st_uid == os.geteuid():
        directory.chmod(found.st_mode & 0o001 | _MINE)  # as `open_to` has left it for what still runs


def _file_system(device: int) -> str:
    """What the kernel calls the file system of a device."""
    number = f"{os.major(device)}:{os.minor(device)}"
    mountinfo = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    return next((mount.kind for mount in mounts_in(mountinfo) if mount.device == number), "an unknown file system")


def _file_name(key: str) -> str:
    """The key; raises ExecutionError for one that is no name of a file, whatever the coordinator thinks of it."""
    if "/" in key or "\0" in key or key in {"", ".", ".."}:
        raise ExecutionError(FailureKind.INVALID_OPTION, "secrets: a key is no name of a file")
    return key


def _give(path: Path, content: bytes, reader: int | None) -> None:
    """Write a file for one user; an agent that may not give files away leaves it to the directory above to hide it."""
    _write(path, content, _OWN if reader is not None else _EVERYBODY)
    if reader not in {None, os.geteuid()}:
        try:
            os.chown(path, reader or 0, -1)
        except PermissionError:
            path.chmod(_EVERYBODY)


def _write(path: Path, content: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, mode)
        file.write(content)
