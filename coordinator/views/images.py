"""The users of images that agents have pulled onto their nodes."""

from collections.abc import Sequence

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.records import Job
from muster.domain.data.kept.image import ToldImage
from muster.domain.ids import JobId, NodeId
from muster.domain.jobs.image import whole_name


def jobs_with(cluster: Cluster, node: NodeId, image: ToldImage) -> Sequence[JobId]:
    """The jobs whose executions on a node have an image, by their ids."""
    users: set[JobId] = set()
    for execution in cluster.load.used(node).executions:
        found = cluster.executions[execution]
        job = cluster.jobs[found.job]
        name = job.spec.role_of(found.rank).image
        if name and _is_meant(job, name, image):
            users.add(found.job)
    return sorted(users)


def _is_meant(job: Job, name: str, image: ToldImage) -> bool:
    """Whether a job means this image by a name: what was found to be meant counts, and else the name alone."""
    for found in job.images:
        if found.image == name:
            return found.id == image.id or (bool(found.digest) and found.pinned in image.names)
    return whole_name(name) in {whole_name(each) for each in image.names}
