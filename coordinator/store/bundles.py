"""The bundles that the coordinator keeps: files in a directory, few of them, each whole and verified.

A file is called `SHA256--NAME`, so that one renaming makes all that is known of it true at once.
"""

import hashlib
import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from muster.bundle.archive import read_bundle
from muster.bundle.signature import checked_bundle, signer_of
from muster.domain.errors import ExhaustedError, InvalidJobError, MusterError, UnknownNameError
from muster.domain.fleet.bundle import BUNDLE_NAME, KeptBundle

log = logging.getLogger(__name__)

MOST_BUNDLES = 8
"""Bundles; the oldest version goes when there are more."""
LARGEST_BUNDLE = 2 << 30
"""Bytes of one."""
BUNDLES_LEAVE_FREE = 1 << 30
"""Bytes of the disk that the database and the logs may count on."""

_ARRIVING = ".arriving-"
_SEPARATOR = "--"


class BundleStore:
    """A directory of bundles, for one coordinator at a time. Calls block."""

    def __init__(
        self,
        directory: Path,
        *,
        signers: frozenset[str] = frozenset(),
        largest: int = LARGEST_BUNDLE,
        left_free: int = BUNDLES_LEAVE_FREE,
    ) -> None:
        self.signers = signers
        """Fingerprints of the keys one of which must have signed a bundle; none: any bundle is taken."""
        self._directory = directory
        self._largest = largest
        self._left_free = left_free
        for left in directory.glob(f"{_ARRIVING}*"):
            left.unlink(missing_ok=True)

    def all(self) -> tuple[KeptBundle, ...]:
        """The bundles that are here, the newest version first."""
        found = (_kept(path) for path in self._directory.glob(f"*{_SEPARATOR}*"))
        return tuple(sorted(filter(None, found), key=lambda each: (each.age, each.name), reverse=True))

    def find(self, name: str) -> tuple[KeptBundle, Path]:
        """One by its name, or the one of the newest version; raises UnknownNameError."""
        for each in self.all():
            if name in {"", each.name}:
                return each, self._path(each.sha256, each.name)
        missing = f"no bundle {name!r}" if name else "no bundle"
        raise UnknownNameError(f"the coordinator has {missing}; `muster bundles upload FILE` gives it one")

    def remove(self, name: str) -> None:
        """Keep one no longer; who is being sent it gets all of it. Raises UnknownNameError."""
        if not name:
            raise InvalidJobError("say which bundle")
        _, path = self.find(name)
        path.unlink(missing_ok=True)

    @contextmanager
    def arrival(self, name: str) -> Iterator["Arrival"]:
        """A bundle that is arriving, one at a time; unless it is kept within the block, nothing of it stays."""
        if not BUNDLE_NAME.fullmatch(name):
            raise InvalidJobError(f"a bundle cannot be called {name!r}; take a name like muster-0.1.0-cp311-x86_64.tar")
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._directory / f"{_ARRIVING}{name}"
        try:
            with path.open("wb") as file:
                yield Arrival(self, name, file, self._largest, self._left_free)
        finally:
            path.unlink(missing_ok=True)

    def keep(self, name: str, file: Path, sha256: str) -> KeptBundle:
        """Take an arrived file in, in place of one of that name; raises MusterError for what is no bundle."""
        target = self._path(sha256, name)
        checked_bundle(file, self.signers)
        file.replace(target)
        kept = _kept(target)
        assert kept is not None, "it was verified"
        for each in self.all():
            if each.name == name and each.sha256 != sha256:
                self._path(each.sha256, name).unlink(missing_ok=True)
        for each in self.all()[MOST_BUNDLES:]:
            log.info("an old bundle makes room", extra={"bundle": each.name})
            self._path(each.sha256, each.name).unlink(missing_ok=True)
        return kept

    def _path(self, sha256: str, name: str) -> Path:
        return self._directory / f"{sha256}{_SEPARATOR}{name}"


class Arrival:
    """Takes the pieces of a bundle, as long as there is room."""

    def __init__(self, store: BundleStore, name: str, file: BinaryIO, largest: int, left_free: int) -> None:
        self._store = store
        self._name = name
        self._file = file
        self._largest = largest
        self._left_free = left_free
        self._hash = hashlib.sha256()
        self._size = 0

    def add(self, data: bytes) -> None:
        """The next piece; raises ExhaustedError where it does not fit."""
        self._size += len(data)
        if self._size > self._largest:
            raise ExhaustedError(f"a bundle may have {self._largest >> 20} MiB; make it for fewer platforms")
        try:
            if shutil.disk_usage(self._file.name).free < self._left_free + len(data):
                raise ExhaustedError("the disk of the coordinator is too full for it")
            self._file.write(data)
        except OSError as error:
            raise ExhaustedError(f"the coordinator cannot write it down: {error.strerror}") from error
        self._hash.update(data)

    def keep(self) -> KeptBundle:
        """All of it has arrived; raises MusterError for what is no bundle."""
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            return self._store.keep(self._name, Path(self._file.name), self._hash.hexdigest())
        except OSError as error:
            raise ExhaustedError(f"the coordinator cannot keep it: {error.strerror}") from error


def _kept(path: Path) -> KeptBundle | None:
    """What is known of a file; None if it cannot be read, as somebody has laid it there or it is gone."""
    sha256, _, name = path.name.partition(_SEPARATOR)
    try:
        manifest, signer, size = read_bundle(path), signer_of(path), path.stat().st_size
    except (MusterError, OSError) as error:
        log.warning("a bundle cannot be read", extra={"bundle": path.name, "cause": str(error)})
        return None
    return KeptBundle(
        name=name,
        size=size,
        sha256=sha256,
        version=manifest.version,
        platforms=manifest.platforms,
        signer=signer,
    )
