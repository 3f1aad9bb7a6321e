"""Memory of GPUs that jobs ask for, as it counts in quotas."""

from dataclasses import replace

from coordinator.core.cluster.cluster import Cluster
from muster.domain.jobs.job import JobSpec, Resources, Role
from muster.domain.jobs.placing.portion import WHOLE_GPU, Portion


def counted(cluster: Cluster, spec: JobSpec) -> JobSpec:
    """The job with what memory of GPUs counts: its part of the smallest GPU that has so much, in one of its pools."""
    if all(role.resources.gpu_memory is None for role in spec.roles):
        return spec
    return replace(spec, roles=tuple(_counted(cluster, spec, role) for role in spec.roles))


def _counted(cluster: Cluster, spec: JobSpec, role: Role) -> Role:
    need = role.resources
    if need.gpu_memory is None:
        return role
    return replace(role, resources=replace(need, gpu_counted=_thousandths(cluster, spec, need, need.gpu_memory)))


def _thousandths(cluster: Cluster, spec: JobSpec, need: Resources, memory: int) -> int:
    """The part of the smallest such GPU; a whole one where there is none."""
    pools, model = cluster.unit_load.pools_of(spec), (need.gpu_model or "").lower()
    nodes = (each.sample for each in cluster.load.total.fresh().classes())
    sizes = (
        gpu.memory
        for node in nodes
        for gpu in node.gpus
        if node.pool in pools and gpu.mig is None and model in gpu.model.lower() and gpu.memory >= memory
    )
    smallest = min(sizes, default=None)
    return WHOLE_GPU if smallest is None else Portion(WHOLE_GPU, memory).of(smallest).thousandths
