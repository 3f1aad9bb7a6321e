"""The users of volumes that nodes keep."""

from collections.abc import Sequence

from coordinator.core.cluster.cluster import Cluster
from muster.domain.data.volume import VolumeId
from muster.domain.ids import JobId, NodeId


def jobs_using(cluster: Cluster, node: NodeId, volume: VolumeId) -> Sequence[JobId]:
    """The jobs whose executions on a node have a kept volume, by their ids."""
    users: set[JobId] = set()
    for execution in cluster.load.used(node).executions:
        found = cluster.executions[execution]
        spec = cluster.jobs[found.job].spec
        if spec.project == volume.project and any(
            each.is_kept and each.name == volume.name for each in spec.role_of(found.rank).volumes
        ):
            users.add(found.job)
    return sorted(users)
