"""What a bundle says of itself: `bundle.json`, which its installer reads line by line, as it has no parser of JSON."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from muster.domain.errors import MusterError

NAME = "bundle.json"
FORMAT = 1

_VERSION = re.compile(r"[0-9A-Za-z.+_-]{1,64}")
_PLATFORM = re.compile(r"cp3[0-9]{1,2}-[a-z0-9_]{1,16}")
_GLIBC = re.compile(r"[0-9]{1,3}\.[0-9]{1,3}")
_ARCHITECTURE = re.compile(r"[a-z0-9_]{1,16}")
_FILE = re.compile(r"[A-Za-z0-9._+!-]+(/[A-Za-z0-9._+!-]+)*")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_FROZEN = "frozen_glibc_"


class InvalidBundleError(MusterError):
    """The file is no bundle, or not the one that was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What is in a bundle."""

    version: str
    platforms: tuple[str, ...]
    """With wheels for each, like `cp311-x86_64`."""
    extras: tuple[str, ...] = ()
    """Of the distribution, that are installed."""
    wheels_glibc: str
    """The oldest C library on which the wheels run."""
    frozen: Mapping[str, str] = field(default_factory=dict)
    """Architectures with programs that bring their Python along, each with the oldest C library on which they run."""
    files: Mapping[str, str]
    """SHA-256 of every other file."""

    def written(self) -> bytes:
        """As it stands in the bundle: one value or one file a line."""
        head = {
            "format": FORMAT,
            "version": self.version,
            "platforms": list(self.platforms),
            "extras": ",".join(self.extras),
            "wheels_glibc": self.wheels_glibc,
            **{_FROZEN + architecture: glibc for architecture, glibc in sorted(self.frozen.items())},
        }
        lines = [f"  {json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
        files = ",\n".join(f"    {json.dumps(name)}: {json.dumps(self.files[name])}" for name in sorted(self.files))
        return "\n".join(["{", *lines, '  "files": {', files, "  }", "}", ""]).encode()


def read_manifest(text: bytes) -> Manifest:
    """What a bundle says of itself; raises InvalidBundleError for anything that no bundle would say."""
    try:
        said = json.loads(text)
        if not isinstance(said, dict) or said.get("format") != FORMAT:
            raise InvalidBundleError(f"{NAME} has a format that this version of Muster does not know")
        frozen = {key.removeprefix(_FROZEN): value for key, value in said.items() if key.startswith(_FROZEN)}
        return Manifest(
            version=_matching(_VERSION, said["version"]),
            platforms=tuple(_matching(_PLATFORM, each) for each in said["platforms"]),
            extras=tuple(filter(None, said["extras"].split(","))),
            wheels_glibc=_matching(_GLIBC, said["wheels_glibc"]),
            frozen={_matching(_ARCHITECTURE, key): _matching(_GLIBC, value) for key, value in frozen.items()},
            files={_path(name): _matching(_SHA256, value) for name, value in said["files"].items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidBundleError(f"{NAME} cannot be read: {error!r}") from error


def _matching(pattern: re.Pattern[str], value: object) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ValueError(f"{value!r} is not possible there")
    return value


def _path(name: str) -> str:
    if {".", ".."} & set(name.split("/")):
        raise ValueError(f"{name!r} leaves the bundle")
    return _matching(_FILE, name)
