"""Our own wheel, made of what is installed here: a checkout or another wheel; needs no build tools and no internet."""

import base64
import hashlib
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from muster import __version__
from muster.domain.errors import MusterError

PACKAGES = ("muster", "coordinator", "agent")
ROOT = Path(__file__).parents[2]
"""Where the packages are."""
NOT_INSTALLED = frozenset({"dev", "bundle"})
"""Extras for those who work on Muster or make bundles."""

_MADE = (1980, 1, 1, 0, 0, 0)
_TAG = "py3-none-any"


def build_wheel(directory: Path) -> Path:
    """The wheel, in this directory; the same bytes for the same sources."""
    path = directory / f"muster-{__version__}-{_TAG}.whl"
    info = f"muster-{__version__}.dist-info"
    contents = dict(_sources())
    contents[f"{info}/METADATA"] = _metadata().encode()
    contents[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: muster\nRoot-Is-Purelib: true\nTag: {_TAG}\n".encode()
    contents[f"{info}/entry_points.txt"] = _entry_points().encode()
    contents[f"{info}/RECORD"] = _record(contents, f"{info}/RECORD")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            entry = zipfile.ZipInfo(name, _MADE)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, content)
    return path


def extras_of(wheel: Path) -> tuple[str, ...]:
    """What of a wheel of ours is installed on machines; raises MusterError for a file that is no wheel of ours."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
            lines = archive.read(name).decode().splitlines()
    except (OSError, zipfile.BadZipFile, StopIteration, UnicodeDecodeError) as error:
        raise MusterError(f"{wheel} cannot be read as a wheel: {error}") from error
    if "Name: muster" not in lines:
        raise MusterError(f"{wheel} is no wheel of Muster")
    offered = {line.removeprefix("Provides-Extra: ") for line in lines if line.startswith("Provides-Extra: ")}
    return tuple(sorted(offered - NOT_INSTALLED))


def version_of(wheel: Path) -> str:
    """As the name of a wheel of ours says."""
    parts = wheel.name.split("-")
    if not wheel.name.endswith(".whl") or parts[0] != "muster":
        raise MusterError(f"{wheel} is no wheel of Muster: its name would be muster-VERSION-{_TAG}.whl")
    return parts[1]


def _sources() -> Iterator[tuple[str, bytes]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc":
                yield str(path.relative_to(ROOT)), path.read_bytes()


def _metadata() -> str:
    """Of a checkout, what its pyproject.toml says now; else what was installed."""
    project = _project()
    if project is None:
        return _installed().read_text("METADATA") or ""
    lines = [
        "Metadata-Version: 2.4",
        "Name: muster",
        f"Version: {__version__}",
        f"Summary: {project['description']}",
        f"License-Expression: {project['license']}",
        f"Requires-Python: {project['requires-python']}",
        *(f"Requires-Dist: {each}" for each in project["dependencies"]),
    ]
    for extra, requirements in sorted(project["optional-dependencies"].items()):
        lines.append(f"Provides-Extra: {extra}")
        lines += [f"Requires-Dist: {each}; extra == '{extra}'" for each in requirements]
    return "\n".join([*lines, ""])


def _entry_points() -> str:
    project = _project()
    if project is None:
        return _installed().read_text("entry_points.txt") or ""
    scripts = [f"{name} = {target}" for name, target in sorted(project["scripts"].items())]
    return "\n".join(["[console_scripts]", *scripts, ""])


def _project() -> Mapping[str, dict[str, list[str]]] | None:
    file = ROOT / "pyproject.toml"
    if not file.exists():
        return None
    project: Mapping[str, dict[str, list[str]]] = tomllib.loads(file.read_text())["project"]
    return project


def _installed() -> Distribution:
    try:
        return distribution("muster")
    except PackageNotFoundError:
        message = "this Muster was not installed by pip, so no wheel can be made of it; name one with --wheel FILE"
        raise MusterError(message) from None


def _record(contents: Mapping[str, bytes], own: str) -> bytes:
    lines = []
    for name, content in contents.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(content)}")
    return "\n".join([*lines, f"{own},,", ""]).encode()
