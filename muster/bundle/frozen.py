"""Programs that bring their Python along, for machines that have none or one that is too old; made by PyInstaller."""

import gzip
import os
import platform
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from muster.bundle.ingredients import libraries_used, packages_used
from muster.bundle.own_wheel import DISTRIBUTIONS, PACKAGES
from muster.bundle.packages import Package, package_in
from muster.bundle.sbom import LibraryPart
from muster.daemon.own_programs import is_frozen
from muster.domain.errors import MusterError

PROGRAMS = ("muster", "muster-agent", "muster-console", "muster-coordinator", "muster-depot", "muster-relay")
"""One program, which sees by what name it was called."""

_PATIENCE = 1800
"""Seconds; a minute is usual."""
_NEEDED_GLIBC = re.compile(rb"GLIBC_(\d{1,3})\.(\d{1,3})")
_OLDEST_GLIBC = (2, 17)
"""The version that PyInstaller's own files need."""
_LEFT_OUT = (
    *("tkinter", "test", "unittest", "pydoc", "pip", "setuptools", "IPython", "numpy"),
    *("grpc_tools", "pytest", "_pytest", "mypy", "hypothesis", "ast_serialize", "yaml", "PyInstaller"),
)
"""What libraries would use if it were there, and what those who work on Muster have installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenPrograms:
    """All programs in one archive."""

    archive: Path
    architecture: str
    glibc: str
    """The oldest C library on which they run: at most that of the machine that made them."""
    python: str
    """Version of the Python that they bring along."""
    maker: str
    """Version of PyInstaller."""
    packages: tuple[Package, ...]
    """Distributions of which they are made."""
    libraries: tuple[LibraryPart, ...]
    """Shared libraries of the system that they bring along."""


def is_possible() -> bool:
    """Whether PyInstaller is installed here."""
    return not is_frozen() and find_spec("PyInstaller") is not None


def build(wheels: Sequence[Path], work: Path) -> FrozenPrograms:
    """Make them of our wheels, for machines like this one; raises MusterError."""
    if not is_possible():
        raise MusterError(
            "programs that bring their Python along are made by PyInstaller, which is not installed: "
            "`pip install 'muster-client[bundle]'`, or use --no-frozen"
        )
    source = work / "source"
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(source)  # noqa: S202 - our own wheel
    _freeze(source, work)
    made = work / "dist" / "muster"
    archive_file = work / f"muster-{platform.machine()}.tar.gz"
    _pack(made, archive_file)
    build_lists = work / "build" / "muster"
    return FrozenPrograms(
        archive=archive_file,
        architecture=platform.machine(),
        glibc=needed_glibc(_files(made)),
        python=platform.python_version(),
        maker=version("pyinstaller"),
        packages=packages_used(build_lists, [package_in(wheel) for wheel in wheels]),
        libraries=tuple(libraries_used(build_lists, source)),
    )


def needed_glibc(files: Iterable[Path]) -> str:
    """The newest version of the C library that any of these programs and libraries asks for."""
    newest = _OLDEST_GLIBC
    for file in files:
        content = file.read_bytes()
        if content.startswith(b"\x7fELF"):
            newest = max([newest, *((int(major), int(minor)) for major, minor in _NEEDED_GLIBC.findall(content))])
    return f"{newest[0]}.{newest[1]}"


def _freeze(source: Path, work: Path) -> None:
    command = [sys.executable, "-m", "PyInstaller", "--noconfirm", "--onedir", "--name=muster", "--log-level=ERROR"]
    command += [f"--distpath={work / 'dist'}", f"--workpath={work / 'build'}", f"--specpath={work}"]
    command += [f"--paths={source}", *(f"--copy-metadata={each.name}" for each in DISTRIBUTIONS)]
    for package in PACKAGES:
        command += [f"--collect-submodules={package}", f"--collect-data={package}"]
    # Migrations, examples and what user code imports are read as files; no import leads to them.
    for read in (Path("coordinator", "store", "migrations"), Path("muster", "examples"), Path("muster", "worker.py")):
        command += [f"--add-data={source / read}:{read if (source / read).is_dir() else read.parent}"]
    command += [f"--exclude-module={name}" for name in _LEFT_OUT]
    environ = {**os.environ, "PYTHONPATH": str(source), "PYTHONHASHSEED": "1", "SOURCE_DATE_EPOCH": "315532800"}
    try:
        run = subprocess.run(  # noqa: S603 - a module of this Python, without a shell
            [*command, str(source / "muster" / "bundle" / "frozen_program.py")],
            cwd=work,
            env=environ,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise MusterError(f"PyInstaller has not ended after {_PATIENCE // 60} minutes") from None
    if run.returncode:
        raise MusterError(f"PyInstaller failed: {' '.join(run.stderr.splitlines()[-5:])}")


def _files(directory: Path) -> Iterable[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file() and not path.is_symlink())


def _pack(made: Path, target: Path) -> None:
    """`lib/muster` with all of it, and `bin` with a link for each name."""
    with (
        target.open("wb") as file,
        gzip.GzipFile(fileobj=file, mode="wb", compresslevel=6, filename="", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive,
    ):
        for path in sorted(made.rglob("*")):
            archive.add(path, f"lib/muster/{path.relative_to(made)}", recursive=False, filter=_plain)
        for name in PROGRAMS:
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname, link.mode = tarfile.SYMTYPE, "../lib/muster/muster", 0o777
            archive.addfile(_plain(link))


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    entry.mtime = 315532800
    return entry
