"""The scratch directory of the benchmarks, outside the repository: peers, compiled programs.

What is missing is installed on the way, asking nothing: Debian packages as root, Python packages into a virtual
environment of its own. A peer that cannot be installed is named by PeerMissingError, and reported as missing.
"""

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.programs import ProgramError, run
from muster.domain.errors import MusterError

PROGRAMS = Path(__file__).parent / "programs"
DEBIAN = {
    "slurm": ("slurmctld", "slurmd", "slurm-client", "munge", "libpmi2-0-dev", "gcc", "libc6-dev"),
    "docker": ("docker.io", "busybox-static", "iproute2"),
    "compiler": ("gcc", "libc6-dev"),
    "sshd": ("openssh-server", "openssh-client"),
    "rsync": ("rsync",),
    "curl": ("curl",),
}
NEEDS = {
    "slurm": ("slurmctld", "slurmd", "srun", "munged", "/usr/include/slurm/pmi2.h", "gcc"),
    "docker": ("dockerd", "/bin/busybox"),
    "compiler": ("gcc",),
    "sshd": ("/usr/sbin/sshd", "ssh"),
    "rsync": ("rsync",),
    "curl": ("curl",),
}
"""Programs, and files, whose presence says that the packages are installed."""
PYTHON = {
    "torch": ("torch==2.13.0", "numpy"),
    "ray": ("ray[default]==2.60.0",),
    "mpi": ("mpich==5.0.2", "mpi4py==4.1.2"),
    "charts": ("matplotlib",),
}
MODULES = {"torch": "torch", "ray": "ray", "mpi": "mpi4py", "charts": "matplotlib"}
POLICY = Path("/usr/sbin/policy-rc.d")
INSTALL_WITHIN = 1200.0


class PeerMissingError(MusterError):
    """A peer is not there and cannot be installed."""


class Scratch:
    """A directory, and how to get what should be in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)

    @property
    def python(self) -> Path:
        """The interpreter of the peers' virtual environment."""
        return self._environment / "bin" / "python"

    @property
    def _environment(self) -> Path:
        """The environment of the interpreter that runs this; another one gets its own."""
        return self.path / f"venv-{platform.python_version()}"

    def fresh(self, name: str) -> Path:
        """An empty directory."""
        directory = self.path / name
        unmount(directory)
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        return directory

    def need(self, peer: str) -> None:
        """Have a peer installed; PeerMissingError if it cannot be."""
        try:
            if peer in DEBIAN:
                self._need_debian(peer)
            if peer in PYTHON:
                self._need_python(peer)
        except ProgramError as error:
            raise PeerMissingError(f"{peer} is missing and cannot be installed: {error}") from error

    def program(self, name: str, *flags: str) -> Path:
        """A compiled program of bench/programs."""
        self.need("compiler")
        binary, source = self.path / "bin" / name, PROGRAMS / f"{name}.c"
        if not binary.exists() or binary.stat().st_mtime < source.stat().st_mtime:
            binary.parent.mkdir(exist_ok=True)
            run(["gcc", "-O2", "-o", binary, source, *flags], 60)
        return binary

    def _need_debian(self, peer: str) -> None:
        if not (missing := missing_of(peer)):
            return
        if os.geteuid() != 0 or shutil.which("apt-get") is None:
            packages = " ".join(DEBIAN[peer])
            remedy = f"only root on Debian can install it: apt-get install {packages}"
            raise PeerMissingError(f"{peer} is missing ({', '.join(missing)}), and {remedy}")
        print(f"installing {' '.join(DEBIAN[peer])} ...", flush=True)
        quiet = {"DEBIAN_FRONTEND": "noninteractive"}
        with _services_stay_off():
            run(["apt-get", "update", "-qq"], INSTALL_WITHIN, quiet)
            run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *DEBIAN[peer]], INSTALL_WITHIN, quiet)
        if missing := missing_of(peer):
            raise PeerMissingError(f"{peer} was installed, but not {', '.join(missing)}")

    def _need_python(self, peer: str) -> None:
        if not self.python.exists():
            run([sys.executable, "-m", "venv", self._environment], INSTALL_WITHIN)
        probe = [
            self.python,
            "-c",
            f"import importlib.util, sys; sys.exit(not importlib.util.find_spec('{MODULES[peer]}'))",
        ]
        if subprocess.run(list(map(str, probe)), check=False, timeout=60).returncode:
            print(f"installing {' '.join(PYTHON[peer])} ...", flush=True)
            run([self.python, "-m", "pip", "install", "-q", *PYTHON[peer]], INSTALL_WITHIN)


def missing_of(peer: str, path: str | None = None) -> list[str]:
    """Which programs and files of a peer are not there; `path` instead of PATH."""
    return [each for each in NEEDS[peer] if not shutil.which(each, path=path) and not Path(each).exists()]


def unmount(directory: Path) -> None:
    """Undo what is mounted below a directory, last first: dockerd leaves its network namespace there."""
    places = [Path(line.split()[1]) for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    for place in reversed(places):
        if place.is_relative_to(directory):
            run(["umount", "-l", place], 30)


@contextmanager
def _services_stay_off() -> Iterator[None]:
    """Installing must not start daemons: the benchmarks start their own."""
    ours = not POLICY.exists()
    if ours:
        POLICY.write_text("#!/bin/sh\nexit 101\n")
        POLICY.chmod(0o755)
    try:
        yield
    finally:
        if ours:
            POLICY.unlink()
