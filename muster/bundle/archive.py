"""The file of a bundle: an uncompressed tar, equal to the byte for equal contents; written whole or not at all."""

import hashlib
import io
import os
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, BinaryIO

from muster.bundle.manifest import BUNDLE_MANIFEST, BundleManifest, InvalidBundleError, read_manifest
from muster.domain.errors import ExhaustedError, MusterError

INSTALLER = "install.sh"

SIGNATURE = "bundle.sig"
PUBLIC_KEY = "bundle.pub"
"""The key that signed the manifest: both it and the signature follow the manifest, or neither does."""

LONGEST_MANIFEST = 1 << 20
LONGEST_SIGNATURE = 4096
_CHUNK = 1 << 20
_MADE = 315532800
"""The time at which every file is said to be made: 1980, the earliest that wheels can say, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignatureFiles:
    """A signature over the text of a manifest."""

    signature: bytes
    public: bytes
    """The key that it fits, in PEM form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleHead:
    """What a bundle begins with."""

    text: bytes
    """The manifest's text as it stands there, which is what was signed."""
    signature: SignatureFiles | None
    """Not checked."""


def sha256(file: IO[bytes]) -> str:
    """The digest of all that is left to read, in hexadecimal digits."""
    digest = hashlib.sha256()
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
    return digest.hexdigest()


def write_bundle(
    output: Path, manifest: BundleManifest, files: Mapping[str, Path], signature: SignatureFiles | None = None
) -> None:
    """Write it; raises MusterError where that is not possible, and then leaves nothing behind."""
    with replaced(output) as target, tarfile.open(fileobj=target, mode="w", format=tarfile.GNU_FORMAT) as archive:
        _add_head(archive, BundleHead(text=manifest.written(), signature=signature))
        for name in sorted(files, key=lambda name: (name != INSTALLER, name)):
            with files[name].open("rb") as source:
                archive.addfile(_entry(name, os.fstat(source.fileno()).st_size), source)


def resigned(file: Path, signature: SignatureFiles) -> None:
    """Put another signature into a bundle; raises MusterError, and then the bundle is as it was."""
    with _opened(file) as source:
        head, member = _head(source)
        with replaced(file) as target, tarfile.open(fileobj=target, mode="w", format=tarfile.GNU_FORMAT) as archive:
            _add_head(archive, replace(head, signature=signature))
            while member is not None:
                archive.addfile(_entry(member.name, member.size), source.extractfile(member))
                member = source.next()


def read_head(file: Path) -> BundleHead:
    """The text of the manifest and the signature over it, unverified; raises as `read_bundle` does."""
    with _opened(file) as archive:
        return _head(archive)[0]


def read_bundle(file: Path) -> BundleManifest:
    """What the bundle says of itself, unverified; raises InvalidBundleError, or MusterError where it is not there."""
    with _opened(file) as archive:
        return read_manifest(_head(archive)[0].text)


def verify_bundle(file: Path) -> BundleManifest:
    """What the bundle says of itself; raises InvalidBundleError unless all of it is there, unchanged, and nothing else.

    Needs no more memory for a large one. Who signed it is not looked at: `signature.checked_bundle` does both.
    """
    with _opened(file) as archive:
        head, member = _head(archive)
        manifest = read_manifest(head.text)
        left = dict(manifest.files)
        while member is not None:
            wanted = left.pop(member.name, None)
            if wanted is None or not _is_plain(member):
                raise InvalidBundleError(f"{file}: {member.name} does not belong there")
            content = archive.extractfile(member)
            assert content is not None, "of a file there is content"
            if sha256(content) != wanted:
                raise InvalidBundleError(f"{file}: {member.name} was changed; make or fetch the bundle again")
            member = archive.next()
        if left:
            raise InvalidBundleError(f"{file}: {min(left)} is missing; make or fetch the bundle again")
    return manifest


def read_part(file: Path, name: str, largest: int) -> bytes:
    """One file of a bundle, compared with its hash; raises InvalidBundleError where it is not there or was changed."""
    with _opened(file) as archive:
        head, member = _head(archive)
        wanted = read_manifest(head.text).files.get(name)
        while member is not None and member.name != name:
            member = archive.next()
        if wanted is not None and member is not None and _is_plain(member) and member.size <= largest:
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


def _head(archive: tarfile.TarFile) -> tuple[BundleHead, tarfile.TarInfo | None]:
    """What a bundle begins with, and the first of its other files."""
    first = archive.next()
    if first is None or first.name != BUNDLE_MANIFEST:
        raise InvalidBundleError(f"{archive.name!s} is no bundle: it does not begin with {BUNDLE_MANIFEST}")
    text = _content(archive, first, LONGEST_MANIFEST)
    member = archive.next()
    if member is None or member.name != SIGNATURE:
        return BundleHead(text=text, signature=None), member
    signature = _content(archive, member, LONGEST_SIGNATURE)
    member = archive.next()
    if member is None or member.name != PUBLIC_KEY:
        raise InvalidBundleError(f"{archive.name!s}: {PUBLIC_KEY} does not follow {SIGNATURE}")
    public = _content(archive, member, LONGEST_SIGNATURE)
    return BundleHead(text=text, signature=SignatureFiles(signature=signature, public=public)), archive.next()


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo, largest: int) -> bytes:
    if not _is_plain(member) or member.size > largest:
        raise InvalidBundleError(f"{archive.name!s}: {member.name} is no file, or too large")
    content = archive.extractfile(member)
    assert content is not None, "of a file there is content"
    return content.read()


def _add_head(archive: tarfile.TarFile, head: BundleHead) -> None:
    parts = {BUNDLE_MANIFEST: head.text}
    if head.signature is not None:
        parts |= {SIGNATURE: head.signature.signature, PUBLIC_KEY: head.signature.public}
    for name, content in parts.items():
        archive.addfile(_entry(name, len(content)), io.BytesIO(content))


def _is_plain(member: tarfile.TarInfo) -> bool:
    """Whether every program that unpacks it sees the same file: no link, no hole, no second name or size."""
    return member.type == tarfile.REGTYPE and not member.pax_headers


def _entry(name: str, size: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mtime, entry.mode = size, _MADE, 0o755 if name == INSTALLER else 0o644
    entry.uname = entry.gname = "root"
    return entry
