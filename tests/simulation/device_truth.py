"""What must be true of MIG devices: each has one user, is of the kind that was asked for, and counts its slices."""

from collections.abc import Iterable

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.records import Execution
from muster.domain.jobs.job import Resources
from muster.domain.jobs.lifecycle import NOT_PLACED, TERMINAL
from tests.simulation.world import Violation

SLICES_OF_A_GPU = 7


def check_devices(cluster: Cluster) -> None:
    """Hold what executions have been given against what they asked for, and what units hold against both."""
    live = [each for each in cluster.executions.values() if each.state not in TERMINAL | NOT_PLACED]
    users: dict[str, Execution] = {}
    for execution in live:
        need = _need(cluster, execution)
        for device in execution.gpus:
            if (device.startswith("MIG-")) != (need.mig is not None):
                raise Violation(f"{execution.id} asked for {need.mig or 'whole GPUs'} and has {device}", execution.job)
            if device in users and device.startswith("MIG-"):
                raise Violation(f"{device} is given to {users[device].id} and to {execution.id}", execution.job)
            users[device] = execution
    if any(_need(cluster, each).mig for each in live):
        _check_counts(cluster, live)


def _check_counts(cluster: Cluster, live: Iterable[Execution]) -> None:
    whole = slices = 0
    for execution in live:
        need = _need(cluster, execution)
        if need.mig is None:
            whole += need.gpus * 1000
        else:
            slices += need.gpus * round(int(need.mig[0]) * 1000 / SLICES_OF_A_GPU)
    units = cluster.unit_load.units
    held = sum(units.root(pool).held[0] for pool in units.pools)
    if held != whole + slices:
        raise Violation(f"MIG devices count as {held - whole} thousandths of GPUs, by their slices they are {slices}")


def _need(cluster: Cluster, execution: Execution) -> Resources:
    return cluster.jobs[execution.job].spec.role_of(execution.rank).resources
