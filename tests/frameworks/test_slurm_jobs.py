"""An sbatch script runs as it is: once, on rank 0, and srun in it starts tasks on all nodes."""

import asyncio
from pathlib import Path

import pytest

from muster.domain.jobs.frameworks.dialect import Dialect
from muster.domain.jobs.frameworks.framework import Framework, FrameworkName
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.lifecycle import JobPhase
from tests.e2e.deployment import Deployment
from tests.frameworks.machine_jobs import client_of, exit_code, run
from tests.integration.jobs import shell

pytestmark = pytest.mark.fleet


def sbatch(script: str) -> JobSpec:
    """Two executions with two tasks each, as `--nodes=2 --ntasks-per-node=2` has them."""
    framework = Framework(name=FrameworkName.MPI, processes=2)
    return shell(script, workers=2, framework=framework, dialects=(Dialect.SLURM,))


async def test_a_script_starts_its_steps_one_after_another(machines: Deployment) -> None:
    script = """
        first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
        [ "$first" = "$MASTER_ADDR" ] && echo "begins on $(hostname)"
        srun -l sh -c 'echo "$(hostname) $SLURM_LOCALID of $SLURM_NTASKS, step $SLURM_STEP_ID"'
        STEP=two srun -N2 --ntasks-per-node=1 sh -c 'echo "$STEP $SLURM_PROCID: $(hostname), rank $MUSTER_RANK"'
        squeue -h -j $SLURM_JOB_ID -o '%i %T %D'
        """
    async with client_of(machines) as client:
        ended, printed = await run(client, sbatch(script))
        number = ended.sequence
    assert ended.phase is JobPhase.SUCCEEDED, (ended.summary, printed)
    assert printed[0] == "begins on node1"
    assert sorted(printed[1:5]) == [f"{task}: node{1 + task // 2} {task % 2} of 4, step 0" for task in range(4)]
    assert sorted(printed[5:7]) == ["two 0: node1, rank 0", "two 1: node2, rank 1"]
    assert printed[7:] == [f"{number} RUNNING 2"]


async def test_a_task_that_fails_ends_the_step_with_its_code(machines: Deployment) -> None:
    script = """srun sh -c '[ $SLURM_PROCID != 3 ] || exit 7; exec sleep 1000'; echo "step: $?"; exit 9"""
    async with client_of(machines) as client:
        ended, printed = await run(client, sbatch(script))
    assert (ended.phase, exit_code(ended)) == (JobPhase.FAILED, 9)
    assert "step: 7" in printed


async def test_scancel_on_another_node_ends_the_script_and_its_tasks(machines: Deployment, tmp_path: Path) -> None:
    task = f"""
        trap "touch {tmp_path}/ended.$SLURM_PROCID; exit" TERM
        touch {tmp_path}/up.$SLURM_PROCID
        until [ $(ls {tmp_path} | grep -c up) = 4 ]; do sleep 0.1; done
        [ $SLURM_PROCID != 3 ] || scancel $SLURM_JOB_ID
        sleep 1000 & wait
        """
    script = f"srun sh -c '{task}'; echo goes on"
    async with client_of(machines) as client:
        ended, printed = await run(client, sbatch(script))
    assert (ended.phase, exit_code(ended)) == (JobPhase.FAILED, 143)
    assert "goes on" not in printed
    told = await asyncio.to_thread(lambda: sorted(file.name for file in tmp_path.glob("ended.*")))
    assert told == [f"ended.{task}" for task in range(4)]


async def test_sbcast_copies_a_file_to_all_nodes(machines: Deployment, tmp_path: Path) -> None:
    script = f"""
        seq 100000 >data && sbcast data {tmp_path}/copy-of-all --force
        sbcast -f data beside
        srun -N2 -n2 sh -c 'cd "$SLURM_SUBMIT_DIR" && echo "$(hostname) $(wc -l <beside)"'
        """
    async with client_of(machines) as client:
        ended, printed = await run(client, sbatch(script))
    assert ended.phase is JobPhase.SUCCEEDED, (ended.summary, printed)
    assert sorted(printed) == ["node1 100000", "node2 100000"]
