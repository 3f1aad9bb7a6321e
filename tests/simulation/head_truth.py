"""What must be true of the seats that are kept for the head: who passes delays nobody."""

from collections.abc import Iterable
from datetime import datetime

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.placement.reservation import Reservation
from coordinator.core.records import Attempt, Job
from coordinator.core.scheduling.order import within_project
from muster.domain.gangs.plan import Goal
from muster.domain.jobs.lifecycle import State
from tests.simulation.world import Violation


class HeadTruth:
    """Remembers by when the seats of the head are free for sure: as long as they are the same, that is never later."""

    def __init__(self) -> None:
        self._kept: Reservation | None = None
        self._by: datetime | None = None

    def stepped(self, cluster: Cluster, attempts: Iterable[Attempt]) -> None:
        """Compare with what was known before this turn, in which these attempts have changed."""
        kept, by = cluster.load.reservation, cluster.load.head.free_by
        before, self._by = self._by, by
        same, self._kept = kept is self._kept, kept
        if kept is None or not same or before is None or (by is not None and by <= before):
            return
        if not cluster.load.still_holds(cluster.jobs[kept.job].spec) or any(map(cluster.placeable, kept.nodes)):
            return  # a node is away: seats will be kept elsewhere, or nobody passes until it is back
        placed = (cluster.jobs[each.job] for each in attempts if each.goal is Goal.PREPARE)
        if any(_may_come_before(cluster, job, cluster.jobs[kept.job]) for job in placed):
            return
        there = (cluster.executions[each] for node in kept.nodes for each in cluster.load.used(node).executions)
        if all(each.state is not State.STOPPING for each in there):  # who comes back has more time to end
            raise Violation(f"seats kept for {kept.job} were to be free by {before}, and now by {by}", kept.job)


def _may_come_before(cluster: Cluster, job: Job, head: Job) -> bool:
    """Whether a job may be placed before the head, wherever it likes; of another project nobody can tell later."""
    if job.spec.project != head.spec.project and cluster.unit_load.units.counted(cluster.unit_load.pool_of(head)):
        return True
    return within_project(job) < within_project(head)
