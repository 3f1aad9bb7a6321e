"""Run:ai: the names of a workload's pods, and torchrun's options as its training operator sets them."""

from collections import Counter

from agent.core.launching.frameworks.surroundings import Surroundings
from muster.domain.gangs.plan import Assignment
from muster.domain.gangs.roster import Roster, host_names
from muster.domain.jobs.frameworks.framework import FrameworkName


def runai(who: Assignment, roster: Roster) -> Surroundings:
    """The variables of one execution, and the names of all as host names: `train-master-0`, `train-worker-0`."""
    index, gpus = Counter(roster.roles[: who.rank])[who.role.name], str(len(who.gpus))
    env = {
        "RUNAI_PROJECT": who.project,
        "RUNAI_JOB_NAME": who.job_name,
        "JOB_NAME": who.job_name,
        "RUNAI_JOB_UUID": who.job,
        "JOB_UUID": who.job,
        "RUNAI_NUM_OF_GPUS": gpus,
        "NODE_NAME": roster.nodes[who.rank],
        "POD_INDEX": str(index),
        "POD_NAME": f"{who.job_name}-{who.role.name}-{index}",
    }
    pods = {f"{who.job_name}-{name}": address for name, address in host_names(roster).items()}
    return Surroundings(env=env, defaults={"PYTHONUNBUFFERED": "1", **_torchrun(who, roster)}, host_names=pods)


def _torchrun(who: Assignment, roster: Roster) -> dict[str, str]:
    """The options of torchrun; `framework: pytorch` says them itself, and not always all of them."""
    if who.framework is not None and who.framework.name is FrameworkName.PYTORCH:
        return {}
    return {
        "PET_NNODES": str(who.world_size),
        "PET_NODE_RANK": str(who.rank),
        "PET_NPROC_PER_NODE": str(max(1, len(who.gpus))),
        "PET_MASTER_ADDR": roster.master_address,
        "PET_MASTER_PORT": str(roster.master_port),
    }
