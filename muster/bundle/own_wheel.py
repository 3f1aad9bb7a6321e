"""Our own wheels, made of what is installed here: a checkout or other wheels; needs no build tools and no internet."""

import base64
import hashlib
import tomllib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from muster import __version__
from muster.domain.errors import MusterError

SOURCE_ROOT = Path(__file__).parents[2]
"""Where the packages are."""
NOT_INSTALLED = frozenset({"bundle"})
"""Extras for those who make bundles."""

_MADE = (1980, 1, 1, 0, 0, 0)
_TAG = "py3-none-any"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnDistribution:
    """One of the distributions that Muster consists of; what it requires stands in its pyproject.toml."""

    name: str
    packages: tuple[str, ...]
    """Top-level packages."""
    project: Path
    """Directory of its pyproject.toml in a checkout."""
    more: Mapping[str, str]
    """Further directories of a checkout, each with its place in the wheel."""

    @property
    def wheel_name(self) -> str:
        """The name of the wheel up to the version."""
        return self.name.replace("-", "_")


CLIENT = OwnDistribution(
    name="muster-client",
    packages=("muster",),
    project=Path("packages", "client"),
    more={"examples/ring": "muster/examples/ring"},
)
FLEET = OwnDistribution(
    name="muster-fleet", packages=("coordinator", "agent", "console"), project=Path("packages", "fleet"), more={}
)
DISTRIBUTIONS = (CLIENT, FLEET)
PACKAGES = (*CLIENT.packages, *FLEET.packages)


def build_wheels(directory: Path) -> tuple[Path, ...]:
    """Write the wheels of all our distributions to a directory; the same bytes for the same sources."""
    return tuple(_build(each, directory) for each in DISTRIBUTIONS)


def checked_wheels(files: Sequence[Path]) -> tuple[Path, ...]:
    """The given wheels in the order of our distributions; raises MusterError unless there is one of each."""
    version_of(files)
    for file in files:
        extras_of(file)  # refuses what only has the name of one
    order = [each.wheel_name for each in DISTRIBUTIONS]
    return tuple(sorted(files, key=lambda file: order.index(file.name.split("-")[0])))


def version_of(wheels: Sequence[Path]) -> str:
    """The one version of our wheels, as their names say; raises MusterError unless there is one of each."""
    versions: dict[str, str] = {}
    for wheel in wheels:
        names = {each.wheel_name: each for each in DISTRIBUTIONS}
        parts = wheel.name.split("-")
        if not wheel.name.endswith(".whl") or parts[0] not in names:
            wanted = " or ".join(f"{name}-VERSION-{_TAG}.whl" for name in names)
            raise MusterError(f"{wheel} is no wheel of Muster: its name would be {wanted}")
        versions[parts[0]] = parts[1]
    missing = [each.name for each in DISTRIBUTIONS if each.wheel_name not in versions]
    if missing:
        raise MusterError(f"the wheel of {' and of '.join(missing)} is missing; name each with --wheel FILE")
    if len(set(versions.values())) > 1 or len(wheels) > len(versions):
        raise MusterError(f"{', '.join(str(wheel) for wheel in wheels)} are not one version of Muster")
    return next(iter(versions.values()))


def extras_of(wheel: Path) -> tuple[str, ...]:
    """Extras of a wheel of ours that are installed on machines; raises MusterError for a file that is no such wheel."""
    name, offered = _said_by(wheel)
    if name not in {each.name for each in DISTRIBUTIONS}:
        raise MusterError(f"{wheel} is no wheel of Muster")
    return tuple(sorted(offered - NOT_INSTALLED))


def _said_by(wheel: Path) -> tuple[str, frozenset[str]]:
    """The name and the extras that stand in a wheel."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            entry = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
            lines = archive.read(entry).decode().splitlines()
    except (OSError, zipfile.BadZipFile, StopIteration, UnicodeDecodeError) as error:
        raise MusterError(f"{wheel} cannot be read as a wheel: {error}") from error
    name = next((line.removeprefix("Name: ") for line in lines if line.startswith("Name: ")), "")
    extras = (line.removeprefix("Provides-Extra: ") for line in lines if line.startswith("Provides-Extra: "))
    return name, frozenset(extras)


def _build(ours: OwnDistribution, directory: Path) -> Path:
    path = directory / f"{ours.wheel_name}-{__version__}-{_TAG}.whl"
    info = f"{ours.wheel_name}-{__version__}.dist-info"
    contents = dict(_sources(ours))
    contents[f"{info}/METADATA"] = _metadata(ours).encode()
    contents[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: muster\nRoot-Is-Purelib: true\nTag: {_TAG}\n".encode()
    contents[f"{info}/entry_points.txt"] = _entry_points(ours).encode()
    contents[f"{info}/RECORD"] = _record(contents, f"{info}/RECORD")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            entry = zipfile.ZipInfo(name, _MADE)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, content)
    return path


def _sources(ours: OwnDistribution) -> Iterator[tuple[str, bytes]]:
    places = {package: package for package in ours.packages} | dict(ours.more)
    for source, place in places.items():
        if source in ours.packages and not (SOURCE_ROOT / source / "__init__.py").exists():
            raise MusterError(f"a bundle holds {ours.name}, which is not installed here: `pip install {ours.name}`")
        for path in sorted((SOURCE_ROOT / source).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc":
                yield f"{place}/{path.relative_to(SOURCE_ROOT / source)}", path.read_bytes()


def _metadata(ours: OwnDistribution) -> str:
    """The metadata of this Muster: what pyproject.toml says in a checkout; else what was installed."""
    project = _project(ours)
    if project is None:
        return _installed(ours).read_text("METADATA") or ""
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {ours.name}",
        f"Version: {__version__}",
        f"Summary: {project['description']}",
        f"License-Expression: {project['license']}",
        f"Requires-Python: {project['requires-python']}",
        *(f"Requires-Dist: {each}" for each in project["dependencies"]),
    ]
    for extra, requirements in sorted(project.get("optional-dependencies", {}).items()):
        lines.append(f"Provides-Extra: {extra}")
        lines += [f"Requires-Dist: {each}; extra == '{extra}'" for each in requirements]
    return "\n".join([*lines, ""])


def _entry_points(ours: OwnDistribution) -> str:
    project = _project(ours)
    if project is None:
        return _installed(ours).read_text("entry_points.txt") or ""
    scripts = [f"{name} = {target}" for name, target in sorted(project["scripts"].items())]
    return "\n".join(["[console_scripts]", *scripts, ""])


def _project(ours: OwnDistribution) -> Mapping[str, Any] | None:
    """The project table of a checkout; None where this is none."""
    file = SOURCE_ROOT / ours.project / "pyproject.toml"
    if not file.exists():
        return None
    project: Mapping[str, Any] = tomllib.loads(file.read_text())["project"]
    return project


def _installed(ours: OwnDistribution) -> Distribution:
    try:
        return distribution(ours.name)
    except PackageNotFoundError:
        message = f"{ours.name} was not installed by pip, so no wheel can be made of it; name one with --wheel FILE"
        raise MusterError(message) from None


def _record(contents: Mapping[str, bytes], own: str) -> bytes:
    lines = []
    for name, content in contents.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(content)}")
    return "\n".join([*lines, f"{own},,", ""]).encode()
