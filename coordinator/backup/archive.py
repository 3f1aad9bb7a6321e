"""The file of a backup: an uncompressed tar of parts with their list at the end; written whole or not at all."""

import hashlib
import io
import os
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from coordinator.backup.manifest import (
    BACKUP_MANIFEST,
    LARGEST_MANIFEST,
    BackupError,
    BackupManifest,
    BackupPart,
    read_manifest,
)
from coordinator.backup.progress import BackupProgress
from muster.trust.files import sync_directory

_CHUNK = 1 << 20


@contextmanager
def fresh_file(path: Path) -> Iterator[IO[bytes]]:
    """A file of mode 0600 that takes its name when the block ends well, and else leaves nothing; raises BackupError."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        try:
            with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(path)
            sync_directory(path.parent)
        finally:
            fresh.unlink(missing_ok=True)
    except OSError as error:
        raise BackupError(f"cannot write {path}: {error.strerror}") from error


class ArchiveWriter:
    """Takes the parts of a backup, one after the other."""

    def __init__(self, file: IO[bytes], progress: BackupProgress) -> None:
        self._tar = tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115 - closed by `end`
        self._progress = progress
        self.parts: list[BackupPart] = []

    def add(self, name: str, source: IO[bytes], size: int) -> None:
        """The next `size` bytes of a file as a part of that name."""
        reader = _HashingReader(source, lambda done: self._progress.tell(name, done, size))
        self._tar.addfile(_entry(name, size), reader)  # type: ignore[arg-type]  # it only reads
        self.parts.append(BackupPart(name=name, size=size, sha256=reader.hexdigest()))

    def end(self, manifest: BackupManifest) -> None:
        """The list, and the end of the archive."""
        written = manifest.written()
        self._tar.addfile(_entry(BACKUP_MANIFEST, len(written)), io.BytesIO(written))
        self._tar.close()


def verified(file: Path, progress: BackupProgress) -> BackupManifest:
    """The list of a backup of which every part is there, unchanged, and nothing else; raises BackupError."""
    found: dict[str, BackupPart] = {}
    manifest: BackupManifest | None = None
    with _opened(file) as tar:
        for member in tar:
            content = tar.extractfile(member) if member.isreg() else None
            if content is None or manifest is not None or member.name in found:
                raise BackupError(f"{file}: {member.name} does not belong there")
            if member.name == BACKUP_MANIFEST:
                manifest = read_manifest(content.read(LARGEST_MANIFEST))
            else:
                found[member.name] = _part(member, content, progress)
    if manifest is None:
        raise BackupError(f"{file} has no list of what it holds: it is no backup, or it was cut short")
    for part in manifest.parts:
        if part.name not in found:
            raise BackupError(f"{file}: {part.name} is missing; take another backup")
        if found.pop(part.name) != part:
            raise BackupError(f"{file}: {part.name} was changed or is damaged; take another backup")
    if found:
        raise BackupError(f"{file}: {min(found)} is not in the list")
    return manifest


def extract(
    file: Path, manifest: BackupManifest, place: Callable[[BackupPart], Path | None], progress: BackupProgress
) -> None:
    """Write the parts of a verified backup where `place` says, and look at every digest again; raises BackupError."""
    wanted: Mapping[str, BackupPart] = {part.name: part for part in manifest.parts}
    with _opened(file) as tar:
        for member in tar:
            part = wanted.get(member.name)
            target = None if part is None else place(part)
            content = tar.extractfile(member)
            if part is None or target is None or content is None:
                continue
            reader = _HashingReader(content, lambda done, part=part: progress.tell(part.name, done, part.size))  # type: ignore[misc]  # mypy infers no types of defaults in lambdas
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as output:
                while chunk := reader.read(_CHUNK):
                    output.write(chunk)
                output.flush()
                os.fsync(output.fileno())
            if reader.hexdigest() != part.sha256:
                raise BackupError(f"{file}: {part.name} has changed while it was read")


def part_content(file: Path, name: str) -> bytes:
    """One small part of a verified backup."""
    with _opened(file) as tar:
        content = tar.extractfile(name)
        assert content is not None, "it was verified"
        return content.read()


class _HashingReader:
    """Reads a file and knows the digest of what was read."""

    def __init__(self, source: IO[bytes], tell: Callable[[int], None]) -> None:
        self._source = source
        self._tell = tell
        self._digest = hashlib.sha256()
        self._done = 0

    def read(self, size: int) -> bytes:
        data = self._source.read(size)
        self._digest.update(data)
        self._done += len(data)
        self._tell(self._done)
        return data

    def hexdigest(self) -> str:
        return self._digest.hexdigest()


def _part(member: tarfile.TarInfo, content: IO[bytes], progress: BackupProgress) -> BackupPart:
    reader = _HashingReader(content, lambda done: progress.tell(f"verifying {member.name}", done, member.size))
    while reader.read(_CHUNK):
        pass
    return BackupPart(name=member.name, size=member.size, sha256=reader.hexdigest())


def _entry(name: str, size: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, 0o600
    return entry


@contextmanager
def _opened(file: Path) -> Iterator[tarfile.TarFile]:
    try:
        with tarfile.open(file, "r:") as tar:
            yield tar
    except OSError as error:
        raise BackupError(f"cannot read {file}: {error.strerror or error}") from error
    except (tarfile.TarError, EOFError, KeyError, ValueError) as error:
        raise BackupError(f"{file} is no backup, or is damaged: {error}") from error
