"""Slurm: the variables of a batch job whose tasks have been started.

Every execution is a node of its own, as it sees no processors and GPUs but those that it was given.
"""

from itertools import groupby

from agent.core.launching.dialects.batch import PARENT_OF_COMMAND, SCANCEL
from agent.core.launching.dialects.node_list import compressed
from agent.core.launching.dialects.sbcast import SBCAST
from agent.core.launching.dialects.scontrol import SCONTROL
from agent.core.launching.dialects.squeue import SQUEUE
from agent.core.launching.dialects.srun import SRUN
from agent.core.launching.frameworks.surroundings import OWN_VARIABLES, Surroundings, if_short
from agent.core.launching.site import LaunchSite
from muster.domain.gangs.plan import Assignment
from muster.domain.gangs.roster import Roster, host_names
from muster.domain.jobs.frameworks.framework import processes_of
from muster.domain.jobs.job import RuntimeKind
from muster.domain.quantity import MILLIS_PER_CPU


def slurm(who: Assignment, roster: Roster, site: LaunchSite) -> Surroundings:
    """The variables of one execution; of its tasks it is told the first, as nobody has started the others yet."""
    names = node_names(who, roster)
    tasks = [processes_of(who.framework, gpus) for gpus in roster.gpu_counts]
    first, own, nodes = sum(tasks[: who.rank]), tasks[who.rank], compressed(names)
    cpus = max(1, who.role.resources.cpu_millis // MILLIS_PER_CPU)
    env = {
        "SLURM_JOB_ID": str(who.sequence),
        "SLURM_JOBID": str(who.sequence),
        "SLURM_JOB_NAME": who.job_name,
        **{key: value for name in _NODE_LISTS for key, value in if_short(name, nodes).items()},
        "SLURM_JOB_NUM_NODES": str(who.world_size),
        "SLURM_NNODES": str(who.world_size),
        "SLURM_NTASKS": str(sum(tasks)),
        "SLURM_NPROCS": str(sum(tasks)),
        **if_short("SLURM_TASKS_PER_NODE", _counts(tasks)),
        "SLURM_PROCID": str(first),
        "SLURM_LOCALID": "0",
        "SLURM_NODEID": str(who.rank),
        "SLURM_GTIDS": ",".join(map(str, range(first, first + own))),
        "SLURM_CPUS_PER_TASK": str(max(1, cpus // own)),
        "SLURM_CPUS_ON_NODE": str(cpus),
        "SLURMD_NODENAME": names[who.rank],
        "SLURM_SUBMIT_DIR": site.workdir or ".",
        "SLURM_SUBMIT_HOST": names[0],
        "SLURM_JOB_PARTITION": who.project,
        "SLURM_RESTART_COUNT": str(who.attempt - 1),
        "SLURM_LAUNCH_NODE_IPADDR": roster.master_address,
    }
    if len(set(tasks)) == 1:
        env["SLURM_NTASKS_PER_NODE"] = str(own)
    if who.gpus:
        env["SLURM_GPUS_ON_NODE"] = str(len(who.gpus))
    return Surroundings(
        env=env,
        programs=_PROGRAMS,
        wrapper=("/bin/sh", f"{site.config}/bin/batch") if who.gang_commands and who.rank == 0 else (),
        own_variables=OWN_VARIABLES,
        host_names=dict(zip(names, roster.addresses, strict=True)) if _contained(who) else {},
    )


def node_names(who: Assignment, roster: Roster) -> list[str]:
    """The names by which an execution finds the nodes of its job, by rank.

    Containers can resolve names of nodes, or names of executions where two of them share a node. Nobody can be sure
    that a plain process resolves anything, and many a machine takes its own name for loopback; so it gets addresses.
    """
    if not _contained(who):
        return list(roster.addresses)
    executions = list(host_names(roster))
    clash = len(set(roster.nodes)) < len(roster.nodes) or not set(roster.nodes).isdisjoint(executions)
    return executions if clash else list(roster.nodes)


def _contained(who: Assignment) -> bool:
    return who.role.runtime is RuntimeKind.DOCKER


def _counts(tasks: list[int]) -> str:
    """The numbers of tasks as Slurm writes them: `2(x3),1`."""
    runs = ((number, len(list(same))) for number, same in groupby(tasks))
    return ",".join(f"{number}(x{length})" if length > 1 else str(number) for number, length in runs)


_PROGRAMS = {
    name: script.encode()
    for name, script in {
        "batch": PARENT_OF_COMMAND,
        "sbcast": SBCAST,
        "scancel": SCANCEL,
        "scontrol": SCONTROL,
        "squeue": SQUEUE,
        "srun": SRUN,
    }.items()
}
_NODE_LISTS = ("SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURM_STEP_NODELIST")
