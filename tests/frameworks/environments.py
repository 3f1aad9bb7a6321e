"""Environments with the real frameworks: made once, kept below the user's cache, and shared by all test runs."""

import fcntl
import hashlib
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ENVIRONMENTS: Mapping[str, tuple[str, ...]] = {
    "torch": ("torch==2.13.*", "numpy==2.4.*", "accelerate==1.15.*", "lightning==2.6.*"),
    "jax": ("jax==0.10.*", "xgboost==3.2.*", "lightgbm==4.7.*", "numpy==2.4.*"),
    "valohai": ("valohai-utils==0.8.*",),
}
"""What pip installs into each, by the name of the environment."""
CACHE = Path.home() / ".cache" / "muster" / "frameworks"
LIMIT = 1800.0
"""Seconds for one environment; some are more than a gigabyte."""


def interpreter(name: str) -> Path:
    """The Python of an environment; it is made first where it is not there, and by one run of several."""
    wanted = ENVIRONMENTS[name]
    digest = hashlib.sha256("\n".join((sys.version, *wanted)).encode()).hexdigest()[:12]
    directory = CACHE / f"{name}-{digest}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ready = directory / "ready"
        if not ready.exists():
            _run(sys.executable, "-m", "venv", "--clear", str(directory))
            _run(str(directory / "bin" / "python"), "-m", "pip", "install", "--quiet", *wanted)
            ready.touch()
    return directory / "bin" / "python"


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=LIMIT)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}{done.stderr}"
