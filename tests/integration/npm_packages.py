"""Packages of npm that tests run: installed once, outside of the source tree."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Collection
from pathlib import Path

import pytest

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "muster-tests"
INSTALL_LIMIT = 300.0


def node() -> str:
    """The program; a test that needs it is skipped where it is not installed."""
    found = shutil.which("node") or shutil.which("nodejs")
    if found is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not here (Debian: nodejs, npm)")
    return found


def installed(source: Path, names: Collection[str] | None = None) -> Path:
    """A copy of a folder, or of some of its files, with all that its `package-lock.json` names."""
    files = sorted(each for each in source.iterdir() if each.is_file() and (names is None or each.name in names))
    recipe = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]
    place = CACHE / f"{source.name}-{recipe}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{source.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            _install(source.name, files, place)
    return place


def _install(name: str, files: list[Path], place: Path) -> None:
    for outdated in CACHE.glob(f"{name}-*"):
        shutil.rmtree(outdated)
    with tempfile.TemporaryDirectory(dir=CACHE) as fresh:
        for file in files:
            shutil.copy(file, fresh)
        command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        done = subprocess.run(command, cwd=fresh, capture_output=True, text=True, timeout=INSTALL_LIMIT, check=False)
        if done.returncode:
            pytest.skip(f"npm ci of {name} failed: {done.stderr.strip()[-300:]}")
        Path(fresh).rename(place)
        Path(fresh).mkdir()  # for the context that removes it
