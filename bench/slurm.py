"""Slurm as a peer: one slurmctld, a slurmd for each node, all on this machine, tuned for latency.

A favourable, minimal Slurm: no accounting, no cgroups, no prolog; `tuned` as far as its manual says how. It knows
processes by their groups: `linuxproc` would read all of /proc for every step, with the processes of all nodes here
and Muster's, which doubles what 64 nodes take. TreeWidth makes no difference with so few nodes.
"""

import asyncio
import os
import platform
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from bench.programs import ProgramError, ended_at_exit, finished, start
from bench.scratch import Scratch

READY_WITHIN = 60.0
COMMAND_WITHIN = 120.0
SETTLES = 0.15
"""Seconds in which the slurmds clear up, as for Muster's agents."""
CPUS = 4
TUNED = "batch_sched_delay=0,sched_min_interval=0,bf_interval=5,sched_max_job_start=0"
"""Together they bring `sbatch` from 2.9 s to below 1 s; the defaults favour throughput."""

CONFIGURATION = """\
ClusterName=bench
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={port}
AuthType=auth/munge
AuthInfo=socket={directory}/munge.socket
CredType=cred/munge
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerType=sched/backfill
SchedulerParameters={tuned}
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
MpiDefault=none
ReturnToService=2
MaxJobCount=50000
MaxArraySize=20000
StateSaveLocation={directory}/state
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd.%n.pid
SlurmdSpoolDir={directory}/spool.%n
SlurmctldDebug=error
SlurmdDebug=error
SlurmctldLogFile={directory}/slurmctld.log
SlurmdLogFile={directory}/slurmd.%n.log
NodeName=n[1-{nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs={cpus} RealMemory=500
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
CONTROLLER_PORT = 16817
FIRST_PORT = 17001


class Slurm:
    """A cluster that runs."""

    def __init__(self, configuration: Path) -> None:
        self._environment = {"SLURM_CONF": str(configuration)}

    async def srun(self, size: int, *words: str | Path) -> float:
        """Run a step on so many nodes; gives when the command was given, in nanoseconds."""
        began = time.time_ns()
        await self._call("srun", f"-N{size}", f"-n{size}", "--immediate=60", *words)
        return began

    async def sbatch(self, *words: str | Path) -> float:
        """Submit a script; gives when the command was given."""
        began = time.time_ns()
        await self._call("sbatch", "--parsable", "-o", "/dev/null", *words)
        return began

    async def idle(self) -> None:
        """Wait until nothing is queued, runs or is being cleared away."""
        async with asyncio.timeout(COMMAND_WITHIN):
            while (await self._call("squeue", "-h", "-t", "PD,R,CG,CF,S", "-o", "%t")).strip():
                await asyncio.sleep(0.02)
        await asyncio.sleep(SETTLES)

    async def ready(self, nodes: int) -> None:
        """Wait until all nodes can be used."""
        found = ""
        try:
            async with asyncio.timeout(READY_WITHIN):
                while f"{nodes} idle" not in found:
                    await asyncio.sleep(0.3)
                    try:
                        found = await self._call("sinfo", "-h", "-o", "%D %T")
                    except ProgramError as error:
                        found = str(error)
        except TimeoutError:
            raise ProgramError(f"Slurm is not ready after {READY_WITHIN:g} s: {found.strip()}") from None

    async def _call(self, *words: str | Path) -> str:
        return await finished(words, COMMAND_WITHIN, **self._environment)


@asynccontextmanager
async def slurm(scratch: Scratch, nodes: int) -> AsyncIterator[Slurm]:
    """A cluster of so many nodes that are all idle."""
    await asyncio.to_thread(scratch.need, "slurm")
    directory = scratch.fresh("slurm")
    directory.chmod(0o755)
    configuration = directory / "slurm.conf"
    (directory / "state").mkdir()
    configuration.write_text(_configuration(directory, nodes))
    async with ended_at_exit() as programs:
        programs.append(start(_munged(directory), directory / "munged.out"))
        await asyncio.sleep(0.5)
        conf = ("-D", "-f", configuration)
        programs.append(start(["slurmctld", "-c", *conf], directory / "slurmctld.out"))
        programs.extend(
            start(["slurmd", "-N", f"n{number}", *conf], directory / "slurmd.out") for number in range(1, nodes + 1)
        )
        cluster = Slurm(configuration)
        await cluster.ready(nodes)
        yield cluster


def _configuration(directory: Path, nodes: int) -> str:
    return CONFIGURATION.format(
        host=platform.node().split(".")[0],
        directory=directory,
        tuned=TUNED,
        nodes=nodes,
        cpus=CPUS,
        port=CONTROLLER_PORT,
        first=FIRST_PORT,
        last=FIRST_PORT + nodes - 1,
    )


def _munged(directory: Path) -> Sequence[str | Path]:
    key = directory / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    files = {"socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
    places = [f"--{option}={directory}/munge.{name}" for option, name in files.items()]
    return ["munged", "--foreground", "--force", f"--key-file={key}", *places]
