"""The limits of CPUs and memory, as the kernel has them for user code: in containers, and in plain processes."""

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from agent.runtimes.kernel.cgroups import Cgroups, Hierarchy, hierarchies, own_cgroups
from agent.runtimes.process.launcher import Launcher
from agent.runtimes.process.runtime import ProcessRuntime
from agent.runtimes.process.spares import SpareSupervisors
from agent.runtimes.runtime import Runtime
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.job import Resources, Role
from tests.contract.docker_place import DockerPlace
from tests.contract.runtimes import GRACE, Place, ProcessPlace, Trial, running, shell, trial

MIB = 1 << 20
NOTHING = 1 << 60
"""More than any machine has: how the first version of cgroups says that there is no limit."""


class ConfinedPlace(ProcessPlace):
    """Plain processes with the cgroups of this machine."""

    def __init__(self, directory: Path, cgroups: Cgroups) -> None:
        super().__init__(directory)
        self._cgroups = cgroups

    @asynccontextmanager
    async def runtime(self) -> AsyncIterator[Runtime]:
        runtime = ProcessRuntime(spares=SpareSupervisors(Launcher(), self._cgroups, wanted=0))
        try:
            yield runtime
        finally:
            await runtime.close()


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A directory that other users get to as well; pytest's own is closed to them."""
    with TemporaryDirectory(dir="/var/tmp", prefix="muster-test-") as directory:
        Path(directory).chmod(0o711)
        yield Path(directory)


@pytest.fixture(params=[pytest.param("process"), pytest.param("docker", marks=pytest.mark.docker)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "docker":
        return DockerPlace(tmp_path, request.getfixturevalue("docker_socket"))
    cgroups = own_cgroups(tmp_path.name[-4:] + str(os.getpid()))
    if not {"cpu", "memory"} <= cgroups.limiting:
        pytest.skip("no cgroup of this machine limits CPUs and memory for tests")
    return ConfinedPlace(tmp_path, cgroups)


def cgroups_of(pid: int) -> tuple[Hierarchy, ...]:
    """The cgroups of a process, as this machine sees them."""
    mounts, memberships = Path("/proc/self/mountinfo").read_text(), Path(f"/proc/{pid}/cgroup").read_text()
    return hierarchies(mounts, memberships)


def found(trial: Trial, *names: str) -> str:
    """The content of the first file of these names in the cgroups of what runs of an execution."""
    [pid, *_] = running(trial.sandbox.execution)
    files = (each.own / name for name in names for each in cgroups_of(pid))
    return next((file.read_text().strip() for file in files if file.exists()), "")


def cpu_limit(trial: Trial) -> float | None:
    """CPUs that an execution gets at most; None: there is no limit."""
    quota, _, period = found(trial, "cpu.max").partition(" ")
    if not quota:
        quota, period = found(trial, "cpu.cfs_quota_us"), found(trial, "cpu.cfs_period_us")
    return None if quota in {"max", "-1", ""} else int(quota) / int(period)


def memory_limit(trial: Trial) -> int | None:
    """Bytes that an execution may use at most; None: there is no limit."""
    said = found(trial, "memory.max", "memory.limit_in_bytes")
    return None if said in {"max", ""} or int(said) > NOTHING else int(said)


@pytest.mark.parametrize(
    ("resources", "cpus", "memory"),
    [
        (Resources(), None, None),
        (Resources(cpu_millis=500), None, None),
        (Resources(cpu_millis=500, cpu_limit=1500), 1.5, None),
        (Resources(memory=64 * MIB), None, 64 * MIB),
        (Resources(memory=64 * MIB, memory_limit=0), None, None),
        (Resources(memory=64 * MIB, memory_limit=128 * MIB), None, 128 * MIB),
        (Resources(memory_limit=96 * MIB, cpu_limit=1000), 1.0, 96 * MIB),
    ],
    ids=["nothing said", "CPUs reserved", "CPUs limited", "memory reserved", "no limit", "a limit above", "both"],
)
async def test_user_code_gets_what_its_job_says_at_most(
    place: Place, tmp_path: Path, resources: Resources, cpus: float | None, memory: int | None
) -> None:
    # A shell that stays: while a program takes the place of another one, nobody can tell whose it is.
    role = Role(command=shell("echo ready; sleep 1000; exit"), resources=resources)
    async with trial(place, tmp_path, role) as it:
        await it.release()
        await it.says(b"ready")
        assert (cpu_limit(it), memory_limit(it)) == (cpus, memory)
        await it.sandbox.stop(GRACE)


async def test_memory_beyond_a_limit_ends_user_code_though_nothing_is_reserved(place: Place, tmp_path: Path) -> None:
    role = Role(command=shell("exec tail /dev/zero"), resources=Resources(memory_limit=64 * MIB))
    async with trial(place, tmp_path, role) as it:
        assert await it.run() == Exit(code=137, out_of_memory=True)
