"""What PyInstaller made a program of, found in the lists that it writes while it works."""

import re
from collections.abc import Iterable, Iterator, Sequence
from email.message import Message
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import cast

from muster.bundle.archive import sha256
from muster.bundle.packages import Package, package_of
from muster.bundle.sbom import LibraryPart

_LISTS = ("PYZ-00.toc", "PKG-00.toc", "COLLECT-00.toc")
_PATH = re.compile(r"'(/[^'\n]+)'")
_BINARY = re.compile(r"\('([^'\n]+)',\s*'(/[^'\n]+)',\s*'BINARY'\)")


def packages_used(build: Path, ours: Sequence[Package]) -> tuple[Package, ...]:
    """The distributions of which anything was taken, and ours."""
    taken = {path for name in _LISTS for path in _PATH.findall(_read(build / name))}
    found = {
        package.name: package
        for each in distributions()
        if not taken.isdisjoint(_files(each))
        for package in [package_of(cast(Message, each.metadata))]
    }
    return tuple(sorted((found | {each.name: each for each in ours}).values(), key=lambda each: each.name))


def libraries_used(build: Path, source: Path) -> Iterator[LibraryPart]:
    """The shared libraries that came from the system: from no distribution, and not from our own sources."""
    known = {path for each in distributions() for path in _files(each)}
    for name, path in sorted(set(_BINARY.findall(_read(build / "COLLECT-00.toc")))):
        if path in known or Path(path).is_relative_to(source) or not Path(path).is_file():
            continue
        with Path(path).open("rb") as file:
            yield LibraryPart(name=name, sha256=sha256(file))


def _files(distribution: Distribution) -> Iterable[str]:
    return [str(distribution.locate_file(each)) for each in distribution.files or ()]


def _read(file: Path) -> str:
    return file.read_text() if file.exists() else ""
