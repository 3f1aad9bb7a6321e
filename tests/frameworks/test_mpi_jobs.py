"""mpirun on rank 0 starts the processes of all executions, whichever MPI it belongs to, and what ends ends all."""

import asyncio
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from muster.domain.jobs.frameworks.framework import Framework, FrameworkName
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.lifecycle import JobPhase
from tests.e2e.deployment import Deployment
from tests.frameworks.conftest import NODE_OPTIONS
from tests.frameworks.machine_jobs import client_of, exit_code, run
from tests.frameworks.mpis import MPIS, PROGRAMS
from tests.frameworks.recipes import PAGE, recipe
from tests.integration.jobs import shell

pytestmark = pytest.mark.fleet

ENVIRONMENT_NAMES = ("openmpi", "mpich", "impi")
MPIEXEC = "mpiexec -n $((NNODES * NPROC_PER_NODE)) ./solve"
MPIRUN_OF_INTEL = 'mpirun -genvexcl "$MUSTER_OWN_VARIABLES" -n $((NNODES * NPROC_PER_NODE)) ./solve'
"""Lines of docs/frameworks.md."""


def job(name: str, script: str, **env: str) -> JobSpec:
    """Two executions with two processes each."""
    framework = Framework(name=FrameworkName.MPI, processes=2)
    return shell(script, workers=2, framework=framework, env={"PATH": MPIS[name].path(), **env})


def mpirun(name: str, action: str, *words: object) -> JobSpec:
    """The job in which mpirun starts four processes."""
    return job(name, MPIS[name].mpirun(action, *words))


@pytest.mark.parametrize("name", MPIS)
async def test_all_processes_start_on_their_nodes_and_find_each_other(machines: Deployment, name: str) -> None:
    spec = mpirun(name, "sum")
    async with client_of(machines) as client:
        ended, printed = await run(client, spec)
    assert ended.phase is JobPhase.SUCCEEDED, (ended.summary, printed)
    # mpirun itself may print more: Open MPI warns where a process that it starts is quicker than its bookkeeping.
    assert sorted(line for line in printed if line.startswith("rank ")) == [
        "rank 0 of 4 on node1, sum 6",
        "rank 1 of 4 on node1, sum 6",
        "rank 2 of 4 on node2, sum 6",
        "rank 3 of 4 on node2, sum 6",
    ]


@pytest.mark.parametrize(
    ("name", "line"),
    [("openmpi5", None), ("mpich5", MPIEXEC), ("impi", MPIRUN_OF_INTEL)],
    ids=["Open MPI", "MPICH", "Intel MPI"],
)
async def test_the_recipes_start_as_many_processes_as_the_job_has(
    machines: Deployment, name: str, line: str | None
) -> None:
    solve = f"python {PROGRAMS / 'mpi_sum.py'}"
    spec = recipe("MPI", "./solve", solve, processes=2, path=MPIS[name].path())
    if line is not None:
        assert line in PAGE.read_text()
        words = ("/bin/sh", "-c", line.replace("./solve", solve))
        spec = replace(spec, roles=(replace(spec.roles[0], command=words),))
    async with client_of(machines) as client:
        ended, printed = await run(client, spec)
    assert ended.phase is JobPhase.SUCCEEDED, (ended.summary, printed)
    for node in ("node1", "node2"):
        assert len([each for each in printed if each.endswith(f" of 4 on {node}, sum 6")]) == 2, printed


@pytest.mark.parametrize(
    ("name", "how"),
    [("openmpi5", "exit"), ("openmpi4", "exit"), ("mpich5", "abort"), ("mpich4", "abort"), ("impi", "abort")],
)
async def test_a_process_that_fails_ends_the_job_with_its_code(machines: Deployment, name: str, how: str) -> None:
    spec = mpirun(name, "fail", how)
    async with client_of(machines) as client:
        ended, _ = await run(client, spec)
    assert (ended.phase, exit_code(ended)) == (JobPhase.FAILED, 7)


@pytest.mark.parametrize("name", MPIS)
async def test_with_mpirun_all_processes_end(machines: Deployment, tmp_path: Path, name: str) -> None:
    line = MPIS[name].mpirun("wait", tmp_path / "never")
    all_wait = f"[ $(ls {tmp_path}/pid.* 2>/dev/null | wc -l) = 4 ]"
    spec = job(name, f"{line} & until {all_wait}; do sleep 0.1; done; kill -9 $!; wait $!")
    async with client_of(machines) as client:
        ended, _ = await run(client, spec)
    assert (ended.phase, exit_code(ended)) == (JobPhase.FAILED, 137)
    pids = [int(file.suffix[1:]) for file in await asyncio.to_thread(lambda: list(tmp_path.glob("pid.*")))]
    assert len(pids) == 4
    assert not any(map(psutil.pid_exists, pids))


async def test_a_daemon_that_is_missing_is_told_at_once(machines: Deployment) -> None:
    spec = job("openmpi5", "mpirun true", PRTE_MCA_prte_launch_agent="/nowhere/prted")
    async with client_of(machines) as client:
        ended, printed = await run(client, spec)
    assert ended.phase is JobPhase.FAILED
    assert any("not found" in line for line in printed), printed


@pytest.mark.parametrize("name", MPIS)
async def test_agents_that_restart_disturb_nothing(machines: Deployment, tmp_path: Path, name: str) -> None:
    go = tmp_path / "go"
    spec = mpirun(name, "wait", go)
    async with client_of(machines) as client:
        submitted = await client.jobs.submit(spec)
        waiting = 0
        async with aclosing(client.jobs.logs(submitted.id, follow=True)) as log:
            async for line in log:
                waiting += line.text.endswith(b" waits")
                if waiting == 4:
                    break
        await asyncio.to_thread(restart_agents, machines)
        go.touch()
        ended = await client.jobs.wait(submitted.id)
    assert ended.phase is JobPhase.SUCCEEDED, ended.summary


def restart_agents(machines: Deployment) -> None:
    for node in machines.fleet.nodes:
        machines.agents[node.name].stop()
    for node in machines.fleet.nodes:
        machines.start_agent(node, *NODE_OPTIONS)
    machines.await_nodes(2)
