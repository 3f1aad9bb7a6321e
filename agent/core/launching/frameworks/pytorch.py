"""PyTorch: torchrun and accelerate start without options. torchrun reads `PET_` and the name of any of its options."""

import json
from collections import Counter

from agent.core.launching.frameworks.surroundings import Surroundings
from muster.domain.gangs.plan import Assignment
from muster.domain.gangs.roster import Roster
from muster.domain.jobs.frameworks.framework import Framework, Rendezvous, processes_of
from muster.domain.quantity import MILLIS_PER_CPU

ACCELERATE_FILE = "accelerate.yaml"


def pytorch(who: Assignment, framework: Framework, roster: Roster) -> Surroundings:
    """The options of torchrun as variables, and a configuration of accelerate."""
    env = {
        "PET_NNODES": str(who.world_size),
        "PET_NPROC_PER_NODE": str(who.processes),
        "PET_MAX_RESTARTS": str(framework.restarts_in_place),
        "PET_LOCAL_ADDR": roster.addresses[who.rank],
        "PET_RDZV_ID": f"{who.job}-{who.attempt}",
        **_rendezvous(who, framework, roster),
    }
    threads = max(1, who.role.resources.cpu_millis // MILLIS_PER_CPU // who.processes)
    return Surroundings(
        env=env,
        defaults={"OMP_NUM_THREADS": str(threads)},
        files={ACCELERATE_FILE: _accelerate(who, framework, roster).encode()},
    )


def _rendezvous(who: Assignment, framework: Framework, roster: Roster) -> dict[str, str]:
    """Where rank 0 listens. torchrun with c10d gives the ranks itself, and would say that it ignores ours."""
    if framework.rendezvous is Rendezvous.C10D:
        return {
            "PET_RDZV_BACKEND": "c10d",
            "PET_RDZV_ENDPOINT": f"{roster.master_address}:{roster.master_port}",
        }
    return {
        "PET_NODE_RANK": str(who.rank),
        "PET_MASTER_ADDR": roster.master_address,
        "PET_MASTER_PORT": str(roster.master_port),
    }


def _accelerate(who: Assignment, framework: Framework, roster: Roster) -> str:
    """The file for `accelerate launch --config_file`; its keys are those that `accelerate config` writes."""
    gpus = roster.gpu_counts
    kind = "MULTI_GPU" if any(gpus) else "MULTI_CPU"
    lines = {
        "compute_environment": "LOCAL_MACHINE",
        "distributed_type": kind if len(gpus) > 1 or who.processes > 1 else "NO",
        "main_process_ip": roster.master_address,
        "main_process_port": roster.master_port,
        "main_training_function": "main",
        "machine_rank": who.rank,
        "num_machines": who.world_size,
        "num_processes": sum(
            processes_of(framework, number) * executions for number, executions in Counter(gpus).items()
        ),
        "rdzv_backend": "static",
        "same_network": True,
        "use_cpu": not any(gpus),
    }
    return "".join(f"{key}: {json.dumps(value)}\n" for key, value in lines.items())
