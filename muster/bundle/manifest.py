"""What a bundle says of itself: `bundle.json`, which its installer reads line by line, as it has no parser of JSON."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from muster.domain.errors import MusterError

BUNDLE_MANIFEST = "bundle.json"
BUNDLE_FORMAT = 1

MOST_FILES = 4096
"""Files of one bundle."""

_NUMBER = r"(?:0|[1-9][0-9]{0,8})"
_VERSION = re.compile(
    # PEP 440 in its normal form, without an epoch: it is the name of a directory, and nothing of it is for a shell.
    rf"(?=.{{1,64}}\Z){_NUMBER}(?:\.{_NUMBER})*(?:(?:a|b|rc){_NUMBER})?(?:\.post{_NUMBER})?(?:\.dev{_NUMBER})?"
    r"(?:\+[a-z0-9]+(?:\.[a-z0-9]+)*)?"
)
_PLATFORM = re.compile(r"cp3[0-9]{1,2}-[a-z0-9_]{1,16}")
_EXTRA = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?")
_GLIBC = re.compile(r"[0-9]{1,3}\.[0-9]{1,3}")
_ARCHITECTURE = re.compile(r"[a-z0-9_]{1,16}")
_FILE = re.compile(r"(?:[a-z]{1,16}/)?[A-Za-z0-9][A-Za-z0-9._+-]{0,199}")
_WHEEL = re.compile(
    r"wheels/(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._]*[A-Za-z0-9])?)-(?P<version>[0-9][A-Za-z0-9._+]*)(?:-[0-9][A-Za-z0-9_.]*)?"
    r"-[A-Za-z0-9_.]+-[A-Za-z0-9_.]+-[A-Za-z0-9_.]+\.whl"
)
_SHA256 = re.compile(r"[0-9a-f]{64}")
_FROZEN = "frozen_glibc_"
_OWN_NAMES = frozenset({BUNDLE_MANIFEST, "bundle.sig", "bundle.pub"})
"""Files that a manifest cannot list."""


class InvalidBundleError(MusterError):
    """The file is no bundle, or not the one that was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """A wheel of a bundle, as its name says."""

    file: str
    name: str
    """The package's name in the normal form: lower case, with dashes."""
    version: str
    sha256: str


def normal_name(name: str) -> str:
    """The name of a distribution in the form by which names are compared (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleManifest:
    """What is in a bundle."""

    version: str
    platforms: tuple[str, ...]
    """Platforms with wheels, like `cp311-x86_64`."""
    extras: tuple[str, ...] = ()
    """Extras of Muster whose requirements are among the wheels."""
    wheels_glibc: str
    """The oldest C library on which the wheels run."""
    frozen: Mapping[str, str] = field(default_factory=dict)
    """Architectures with programs that bring their Python along, each with the oldest C library on which they run."""
    files: Mapping[str, str]
    """SHA-256 of every other file."""

    @property
    def wheels(self) -> tuple["Wheel", ...]:
        """The wheels among the files, by name, version and file."""
        found = ((name, _WHEEL.fullmatch(name)) for name in self.files)
        wheels = (
            Wheel(file=name, name=normal_name(match["name"]), version=match["version"], sha256=self.files[name])
            for name, match in found
            if match is not None
        )
        return tuple(sorted(wheels, key=lambda each: (each.name, each.version, each.file)))

    def written(self) -> bytes:
        """The text of `bundle.json`: one value or one file a line."""
        head = {
            "format": BUNDLE_FORMAT,
            "version": self.version,
            "platforms": list(self.platforms),
            "extras": ",".join(self.extras),
            "wheels_glibc": self.wheels_glibc,
            **{_FROZEN + architecture: glibc for architecture, glibc in sorted(self.frozen.items())},
        }
        return _written(head, self.files)


def read_manifest(text: bytes) -> BundleManifest:
    """What a bundle says of itself; raises InvalidBundleError for anything that no bundle would say.

    The text must be laid out as `BundleManifest.written` does it, so that the installer, which reads lines, and whoever
    reads JSON understand the same.
    """
    try:
        said = json.loads(text, object_pairs_hook=_table)
        if not isinstance(said, dict) or said.get("format") != BUNDLE_FORMAT:
            raise InvalidBundleError(f"{BUNDLE_MANIFEST} has a format that this version of Muster does not know")
        files = _table_of_texts(said.pop("files"))
        _check_layout(said, files, text)
        frozen = {key.removeprefix(_FROZEN): value for key, value in said.items() if key.startswith(_FROZEN)}
        return BundleManifest(
            version=_matching(_VERSION, said["version"]),
            platforms=_different(_matching(_PLATFORM, each) for each in _list(said["platforms"])),
            extras=_different(_matching(_EXTRA, each) for each in said["extras"].split(",") if said["extras"]),
            wheels_glibc=_matching(_GLIBC, said["wheels_glibc"]),
            frozen={_matching(_ARCHITECTURE, key): _matching(_GLIBC, value) for key, value in frozen.items()},
            files={_file(name): _matching(_SHA256, value) for name, value in files.items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidBundleError(f"{BUNDLE_MANIFEST} cannot be read: {error!r}") from error


def _written(head: Mapping[str, object], files: Mapping[str, str]) -> bytes:
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
    listed = ",\n".join(f"    {json.dumps(name)}: {json.dumps(files[name])}" for name in sorted(files))
    return "\n".join(["{", *lines, '  "files": {', listed, "  }", "}", ""]).encode()


def _check_layout(head: Mapping[str, object], files: Mapping[str, str], text: bytes) -> None:
    if _written(head, files) != text:
        raise ValueError("its lines are not as Muster writes them")


def _table(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A table of JSON; ValueError where a key stands twice, as its readers would not agree which one counts."""
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("a key stands there twice")
    return table


def _table_of_texts(value: object) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise ValueError("files are a table of hashes")
    if len(value) > MOST_FILES:
        raise ValueError(f"a bundle has at most {MOST_FILES} files")
    return value


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is no list")
    return value


def _different(values: Iterable[str]) -> tuple[str, ...]:
    found = tuple(values)
    if len(set(found)) != len(found):
        raise ValueError(f"{', '.join(found)}: one of them stands there twice")
    return found


def _matching(pattern: re.Pattern[str], value: object) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ValueError(f"{value!r} is not possible there")
    return value


def _file(name: str) -> str:
    """The name of a file at the top of the bundle or in one directory; a wheel must be called as wheels are."""
    if name in _OWN_NAMES or (name.startswith("wheels/") and not _WHEEL.fullmatch(name)):
        raise ValueError(f"{name!r} is not possible there")
    return _matching(_FILE, name)
