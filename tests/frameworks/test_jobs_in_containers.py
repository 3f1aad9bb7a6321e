"""Jobs in containers whose image has an MPI and busybox, and neither ssh nor sshd nor Python."""

import pytest

from muster.domain.jobs.failure import FailureKind
from muster.domain.jobs.frameworks.dialect import Dialect
from muster.domain.jobs.frameworks.framework import Framework, FrameworkName
from muster.domain.jobs.job import JobSpec, Resources
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.rules.filling_in import filled_in
from tests.e2e.deployment import Deployment
from tests.e2e.images import Image, busybox
from tests.frameworks.machine_jobs import client_of, exit_code, run
from tests.frameworks.mpis import OF_DEBIAN
from tests.integration.jobs import shell

pytestmark = pytest.mark.fleet

PRINT_WHAT_MUST_NOT_BE_THERE = "find / -xdev -name ssh -o -xdev -name sshd -o -xdev -name 'python*'"


def job(machines: Deployment, image: Image, script: str, **keys: object) -> JobSpec:
    """Two containers with two processes each; their nodes get the image first."""
    machines.fleet.load(image)
    framework = Framework(name=FrameworkName.MPI, processes=2)
    return shell(script, workers=2, framework=framework, image=image.reference, **keys)


@pytest.mark.parametrize("name", OF_DEBIAN)
async def test_mpirun_starts_processes_in_all_containers(machines: Deployment, name: str) -> None:
    mpi = OF_DEBIAN[name]
    spec = job(machines, mpi.image(), f"{PRINT_WHAT_MUST_NOT_BE_THERE}; {mpi.mpirun('sum')}")
    async with client_of(machines) as client:
        ended, printed = await run(client, spec)
    assert ended.phase is JobPhase.SUCCEEDED, (ended.summary, printed)
    assert sorted(printed) == [
        "rank 0 of 4 on node1, sum 6",
        "rank 1 of 4 on node1, sum 6",
        "rank 2 of 4 on node2, sum 6",
        "rank 3 of 4 on node2, sum 6",
    ]


async def test_an_image_without_the_daemon_is_told_at_once(machines: Deployment) -> None:
    mpi = OF_DEBIAN["openmpi4"]
    spec = job(machines, mpi.image(), mpi.mpirun("sum"), env={"OMPI_MCA_orte_launch_agent": "/nowhere/orted"})
    async with client_of(machines) as client:
        ended, printed = await run(client, spec)
    assert ended.phase is JobPhase.FAILED
    assert any("/nowhere/orted: not found" in line for line in printed), printed


async def test_an_execution_that_runs_out_of_memory_is_named_although_rank_0_ends_first(machines: Deployment) -> None:
    resources = Resources(cpu_millis=100, memory=64 << 20)
    spec = job(machines, busybox(), "muster-exec 1 tail /dev/zero", resources=resources)
    async with client_of(machines) as client:
        ended, printed = await run(client, filled_in(spec))
    assert ended.failure is not None, printed
    assert str(ended.failure) == "rank 1 on node2: ran out of memory; then rank 0 on node1: was killed by SIGKILL"
    assert (ended.failure.kind, exit_code(ended)) == (FailureKind.OUT_OF_MEMORY, 137)


async def test_an_sbatch_script_starts_its_steps_in_all_containers(machines: Deployment) -> None:
    script = """
        srun -l sh -c 'echo "$(hostname) $SLURM_LOCALID of $SLURM_NTASKS"'
        seq 100000 >data && sbcast data /tmp/copy
        srun -N2 --ntasks-per-node=1 sh -c 'echo "$MUSTER_NODE: $(wc -l </tmp/copy)"'
        srun sh -c '[ $SLURM_PROCID != 3 ] || exit 7; exec sleep 1000'
        """
    spec = job(machines, busybox(), script, dialects=(Dialect.SLURM,))
    async with client_of(machines) as client:
        ended, printed = await run(client, spec)
    assert (ended.phase, exit_code(ended)) == (JobPhase.FAILED, 7), (ended.summary, printed)
    assert sorted(printed[:4]) == [f"{task}: node{1 + task // 2} {task % 2} of 4" for task in range(4)]
    assert sorted(printed[4:6]) == ["node1: 100000", "node2: 100000"]
