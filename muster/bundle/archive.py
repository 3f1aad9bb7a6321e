"""The file of a bundle: an uncompressed tar, equal to the byte for equal contents; written whole or not at all."""

import hashlib
import io
import os
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO

from muster.bundle.manifest import NAME, InvalidBundleError, Manifest, read_manifest
from muster.domain.errors import ExhaustedError, MusterError

INSTALLER = "install.sh"

LONGEST_MANIFEST = 1 << 20
_CHUNK = 1 << 20
_MADE = 315532800
"""Of every file, when it was made: 1980, the earliest that wheels can say, too."""


def sha256(file: IO[bytes]) -> str:
    """Of all that is left to read, in hexadecimal digits."""
    digest = hashlib.sha256()
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
    return digest.hexdigest()


def write_bundle(output: Path, manifest: Manifest, files: Mapping[str, Path]) -> None:
    """Write it; raises MusterError where that is not possible, and then leaves nothing behind."""
    with replaced(output) as target, tarfile.open(fileobj=target, mode="w", format=tarfile.GNU_FORMAT) as archive:
        written = manifest.written()
        archive.addfile(_entry(NAME, len(written)), io.BytesIO(written))
        for name in sorted(files, key=lambda name: (name != INSTALLER, name)):
            with files[name].open("rb") as source:
                archive.addfile(_entry(name, os.fstat(source.fileno()).st_size), source)


def read_bundle(file: Path) -> Manifest:
    """What the bundle says of itself, unverified; raises InvalidBundleError, or MusterError where it is not there."""
    with _opened(file) as archive:
        return _manifest(archive)


def verify_bundle(file: Path) -> Manifest:
    """What the bundle says of itself; raises InvalidBundleError unless all of it is there, unchanged, and nothing else.

    Needs no more memory for a large one.
    """
    with _opened(file) as archive:
        manifest = _manifest(archive)
        left = dict(manifest.files)
        while (member := archive.next()) is not None:
            wanted = left.pop(member.name, None)
            if wanted is None or not _is_plain(member):
                raise InvalidBundleError(f"{file}: {member.name} does not belong there")
            content = archive.extractfile(member)
            assert content is not None, "of a file there is content"
            if sha256(content) != wanted:
                raise InvalidBundleError(f"{file}: {member.name} was changed; make or fetch the bundle again")
        if left:
            raise InvalidBundleError(f"{file}: {min(left)} is missing; make or fetch the bundle again")
    return manifest


def read_part(file: Path, name: str, largest: int) -> bytes:
    """One file of a bundle, compared with its hash; raises InvalidBundleError where it is not there or was changed."""
    with _opened(file) as archive:
        wanted = _manifest(archive).files.get(name)
        while wanted is not None and (member := archive.next()) is not None:
            if member.name != name:
                continue
            if not _is_plain(member) or member.size > largest:
                break
            content = archive.extractfile(member)
            assert content is not None, "of a file there is content"
            found = content.read()
            if hashlib.sha256(found).hexdigest() != wanted:
                raise InvalidBundleError(f"{file}: {name} was changed; make or fetch the bundle again")
            return found
    raise InvalidBundleError(f"{file} has no {name}; an older Muster made it, so make the bundle again")


@contextmanager
def replaced(output: Path) -> Iterator[BinaryIO]:
    """A file that takes the place of `output` when the block ends well, and else leaves nothing behind."""
    fresh = output.with_name(f".{output.name}.new")
    try:
        try:
            with fresh.open("wb") as target:
                yield target
                target.flush()
                os.fsync(target.fileno())
            fresh.replace(output)
        finally:
            fresh.unlink(missing_ok=True)
    except OSError as error:
        raise ExhaustedError(f"cannot write {output}: {error.strerror}; make room or name another --output") from error


@contextmanager
def _opened(file: Path) -> Iterator[tarfile.TarFile]:
    try:
        with tarfile.open(file, mode="r:") as archive:
            yield archive
    except tarfile.TarError as error:
        raise InvalidBundleError(f"{file} is no bundle, or has not arrived whole: {error}") from error
    except OSError as error:
        raise MusterError(f"cannot read {file}: {error.strerror}") from error


def _manifest(archive: tarfile.TarFile) -> Manifest:
    first = archive.next()
    if first is None or first.name != NAME or not _is_plain(first) or first.size > LONGEST_MANIFEST:
        raise InvalidBundleError(f"{archive.name!s} is no bundle: it does not begin with {NAME}")
    content = archive.extractfile(first)
    assert content is not None, "of a file there is content"
    return read_manifest(content.read())


def _is_plain(member: tarfile.TarInfo) -> bool:
    """Whether every program that unpacks it sees the same file: no link, no hole, no second name or size."""
    return member.type == tarfile.REGTYPE and not member.pax_headers


def _entry(name: str, size: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mtime, entry.mode = size, _MADE, 0o755 if name == INSTALLER else 0o644
    entry.uname = entry.gname = "root"
    return entry
