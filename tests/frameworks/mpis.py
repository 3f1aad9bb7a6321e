"""The MPIs with which jobs are run: three from PyPI, with programs in Python, and Debian's two, with one in C."""

import os
import shutil
import subprocess
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

import pytest

from tests.e2e.images import Image, with_programs
from tests.frameworks.environments import CACHE, interpreter

PROGRAMS = Path(__file__).with_name("programs")
MULTIARCH = sysconfig.get_config_var("MULTIARCH")
LIMIT = 60.0
"""Seconds for compiling one program."""


class Mpi(Protocol):
    """An MPI that is installed here."""

    def path(self) -> str:
        """The value of PATH with which its programs are found."""
        ...

    def mpirun(self, action: str, *words: object) -> str:
        """The line for a shell that starts four processes for `sum`, `fail HOW` or `wait FILE`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MpiOfPyPI:
    """An MPI in an environment of its own, with mpi4py."""

    name: str
    options: str = ""

    def path(self) -> str:
        """The value of PATH that has the environment first."""
        return f"{interpreter(self.name).parent}:{os.defpath}"

    def mpirun(self, action: str, *words: object) -> str:
        """The line that starts four Pythons."""
        program = PROGRAMS / f"mpi_{action}.py"
        return " ".join(("mpirun", self.options, "-n 4 python", str(program), *map(str, words)))


@dataclass(frozen=True, slots=True, kw_only=True)
class MpiOfDebian:
    """An MPI whose programs end in its name, as two of them may be installed side by side."""

    name: str
    package: str
    parts: tuple[str, ...]
    """Programs and directories that an image needs beside the program in C."""

    def path(self) -> str:
        """The usual value of PATH."""
        return os.defpath

    def mpirun(self, action: str, *words: object) -> str:
        """The line that starts four programs in C."""
        program = _compiled(self.name, self.package)
        return " ".join((f"mpirun.{self.name} -n 4", str(program), action, *map(str, words)))

    def image(self) -> Image:
        """An image with this MPI and the program in C, at their places here, and busybox."""
        program = _compiled(self.name, self.package)
        return with_programs(f"muster/{self.name}", program, *map(Path, self.parts))


@cache
def _compiled(name: str, package: str) -> Path:
    compiler = f"mpicc.{name}"
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}; install {package}")
    CACHE.mkdir(parents=True, exist_ok=True)
    program = CACHE / f"mpi_world.{name}"
    beside = program.with_suffix(f".{name}.{os.getpid()}")
    subprocess.run(
        (compiler, "-O1", "-Wall", "-Werror", "-o", beside, PROGRAMS / "mpi_world.c"), check=True, timeout=LIMIT
    )
    return beside.replace(program)


OF_DEBIAN: Mapping[str, MpiOfDebian] = {
    "openmpi4": MpiOfDebian(
        name="openmpi",
        package="libopenmpi-dev and openmpi-bin",
        parts=(
            *("/usr/bin/mpirun.openmpi", "/usr/bin/orted", "/usr/share/openmpi", "/etc/openmpi"),
            *(f"/usr/lib/{MULTIARCH}/openmpi/lib/openmpi3", f"/usr/lib/{MULTIARCH}/pmix2"),
        ),
    ),
    "mpich4": MpiOfDebian(
        name="mpich",
        package="libmpich-dev and mpich",
        parts=("/usr/bin/mpirun.mpich", "/usr/bin/hydra_pmi_proxy"),
    ),
}

MPIS: Mapping[str, Mpi] = {
    "openmpi5": MpiOfPyPI(name="openmpi"),
    "mpich5": MpiOfPyPI(name="mpich"),
    "impi": MpiOfPyPI(name="impi", options="-genvexcl $MUSTER_OWN_VARIABLES"),
    **OF_DEBIAN,
}
