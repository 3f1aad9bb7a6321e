"""Wheels for other machines than this one, fetched by pip."""

import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from muster.domain.errors import ExhaustedError, MusterError, UnavailableError

GLIBC = "2.28"
"""The version in the oldest systems that wheels are taken for: RHEL 8, Debian 10, Ubuntu 20.04 have that or a newer
one.
"""

_OLDER = range(28, 4, -1)
_OLD_NAMES = ("manylinux2014", "manylinux2010", "manylinux1")
"""What wheels for old systems are called, too."""
_PATIENCE = 1800
"""Seconds for all wheels of one platform."""

_OFFLINE = re.compile(r"NewConnectionError|NameResolutionError|ConnectTimeout|name resolution|Network is unreachable")
_MISSING = re.compile(r"No matching distribution found for (.+)")
_FULL = re.compile(r"No space left on device")
_NO_PIP = re.compile(r"No module named pip")


@dataclass(frozen=True, slots=True)
class Platform:
    """What a machine needs wheels for."""

    python: str
    """Like `3.11`."""
    architecture: str
    """The architecture in the kernel's word."""

    def __str__(self) -> str:
        return f"cp{self.python.replace('.', '')}-{self.architecture}"


def download(directory: Path, platform: Platform, requirements: Sequence[str], find_links: Path | None) -> None:
    """Fetch wheels for these requirements and all that they require, for a platform; raises MusterError.

    With `find_links` they are taken from that directory only, else from where pip is configured to look.
    """
    tags = [f"manylinux_2_{minor}" for minor in _OLDER] + list(_OLD_NAMES)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"]
    command += ["--only-binary=:all:", "--dest", str(directory), "--python-version", platform.python]
    command += [part for tag in tags for part in ("--platform", f"{tag}_{platform.architecture}")]
    command += ["--retries", "1"] if find_links is None else ["--no-index", "--find-links", str(find_links.absolute())]
    try:
        run = subprocess.run(  # noqa: S603 - pip of this Python, without a shell
            [*command, *requirements], capture_output=True, text=True, timeout=_PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"pip has not fetched the wheels for {platform} in {_PATIENCE // 60} minutes") from None
    if run.returncode:
        raise _problem(run.stderr, platform, find_links)


def _problem(said: str, platform: Platform, find_links: Path | None) -> MusterError:
    """What pip complains about, in words that say what to do."""
    missing = _MISSING.search(said)
    if _NO_PIP.search(said):
        return MusterError(f"{sys.executable} has no pip, which fetches the wheels; install it there (python3-pip)")
    if _FULL.search(said):
        return ExhaustedError(f"the disk is full: the wheels for {platform} do not fit beside the --output")
    if _OFFLINE.search(said):
        return UnavailableError(
            "the package index cannot be reached; make the bundle where there is internet, or from a directory of "
            "wheels with --find-links DIR"
        )
    if missing is not None:
        where = "that pip can find" if find_links is None else f"in {find_links}"
        return MusterError(f"there is no wheel of {missing[1].strip()} for {platform} {where}; leave that platform out")
    lines = [line for line in said.splitlines() if line.strip() and not line.startswith("WARNING")]
    return MusterError(f"pip cannot fetch the wheels for {platform}: {' '.join(lines[-3:]) or 'it does not say why'}")
