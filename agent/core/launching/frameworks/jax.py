"""JAX: one process in each execution, which has all its GPUs."""

from agent.core.launching.frameworks.surroundings import Surroundings, if_short
from muster.domain.gangs.plan import Assignment
from muster.domain.gangs.roster import MASTER_PORT_NAME, Roster


def jax(who: Assignment, roster: Roster) -> Surroundings:
    """What `jax.distributed.initialize()` finds by itself, and the names that Kubeflow's JAX jobs have for it.

    JAX takes the number of processes and its own from a cluster that it knows. Slurm's variables are the ones that it
    can be given anywhere; it looks for the address in its own variable first.
    """
    address, port = roster.master_address, str(roster.master_port)
    number, rank = str(who.world_size), str(who.rank)
    env = {
        "JAX_COORDINATOR_ADDRESS": f"{address}:{port}",
        "JAX_NUM_PROCESSES": number,
        "JAX_PROCESS_ID": rank,
        "COORDINATOR_ADDRESS": address,
        "COORDINATOR_PORT": port,
        "NUM_PROCESSES": number,
        "PROCESS_ID": rank,
        "SLURM_JOB_ID": str(who.sequence),
        "SLURM_STEP_NODELIST": roster.nodes[0],
        "SLURM_NTASKS": number,
        "SLURM_PROCID": rank,
        "SLURM_LOCALID": "0",
        **if_short("SLURM_STEP_NODELIST", ",".join(dict.fromkeys(roster.nodes))),
    }
    if who.rank == 0:
        env["JAX_COORDINATOR_BIND_ADDRESS"] = f"[::]:{roster.listened(0)[MASTER_PORT_NAME]}"
    if who.gpus:
        env["JAX_LOCAL_DEVICE_IDS"] = ",".join(map(str, range(len(who.gpus))))
    return Surroundings(env=env)
