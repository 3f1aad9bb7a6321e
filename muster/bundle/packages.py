"""What wheels and installed distributions say of themselves: name, version, licence, what they require."""

import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from muster.bundle.manifest import normal_name
from muster.bundle.wheels import Platform
from muster.domain.errors import MusterError

LONGEST_LICENCE = 100
"""Characters of a licence that count as its name; what is longer is its text."""

_LARGEST_METADATA = 8 << 20
_CLASSIFIER = "License :: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """One distribution, as its metadata says."""

    name: str
    """The package's name in the normal form."""
    version: str
    expression: str = ""
    """The licence as an SPDX expression; empty where it gives none."""
    licences: tuple[str, ...] = ()
    """Names of its licences where it gives no expression."""
    requires: tuple[str, ...] = ()
    """Requirements as they stand there."""


def package_in(wheel: Path) -> Package:
    """What a wheel says of itself; raises MusterError for a file that is no wheel."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            entry = next(each for each in archive.infolist() if each.filename.endswith(".dist-info/METADATA"))
            if entry.file_size > _LARGEST_METADATA:
                raise MusterError(f"{wheel.name} says too much of itself: {entry.file_size} bytes")
            text = archive.read(entry).decode()
    except (OSError, zipfile.BadZipFile, StopIteration, UnicodeDecodeError) as error:
        raise MusterError(f"{wheel} cannot be read as a wheel: {error}") from error
    return package_of(HeaderParser().parsestr(text))


def package_of(metadata: Message) -> Package:
    """A package out of its METADATA."""
    short = str(metadata["License"] or "").strip()
    classifiers = [each for each in metadata.get_all("Classifier", ()) if each.startswith(_CLASSIFIER)]
    if short and "\n" not in short and len(short) <= LONGEST_LICENCE:
        names = [short]
    else:
        names = [each.rpartition(" :: ")[2] for each in classifiers]
    return Package(
        name=normal_name(str(metadata["Name"])),
        version=str(metadata["Version"]),
        expression=str(metadata["License-Expression"] or ""),
        licences=tuple(names),
        requires=tuple(metadata.get_all("Requires-Dist", ())),
    )


def edges(
    packages: Mapping[str, Package], platform: Platform, roots: Mapping[str, frozenset[str]]
) -> Iterator[tuple[str, str]]:
    """Which of the packages of a platform requires which, by name, for roots with these extras.

    What is required and not among the packages does not come up.
    """
    environment = {
        "implementation_name": "cpython",
        "implementation_version": f"{platform.python}.0",
        "os_name": "posix",
        "platform_machine": platform.architecture,
        "platform_python_implementation": "CPython",
        "platform_release": "",
        "platform_system": "Linux",
        "platform_version": "",
        "python_full_version": f"{platform.python}.0",
        "python_version": platform.python,
        "sys_platform": "linux",
    }
    left = [(name, extra) for name, extras in roots.items() for extra in ("", *sorted(extras)) if name in packages]
    seen = set(left)
    while left:
        name, extra = left.pop()
        for requirement in _requirements(packages[name]):
            wanted = normal_name(requirement.name)
            marker = requirement.marker
            if wanted not in packages or (marker is not None and not marker.evaluate(environment | {"extra": extra})):
                continue
            yield name, wanted
            fresh = {(wanted, each) for each in ("", *map(normal_name, requirement.extras))} - seen
            seen |= fresh
            left += sorted(fresh)


def _requirements(package: Package) -> Iterator[Requirement]:
    for each in package.requires:
        try:
            yield Requirement(each)
        except InvalidRequirement as error:
            raise MusterError(f"{package.name} {package.version} requires {each!r}, which is not understood") from error
