"""What has changed durably, in order, for those who keep a picture of it: jobs, nodes and projects."""

from collections.abc import Container, Iterable, Mapping

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.effects import AnnounceJob, Effect
from coordinator.core.records import Change, DropProject, Put
from coordinator.signals import ANY_RECORD, Signals
from muster.domain.feed import FeedKey, FeedPart
from muster.domain.fleet.access import Project
from muster.domain.ids import JobId, NodeId
from muster.domain.revisions import Revisions


class EngineSignals(Signals):
    """The signals of the engine, which keeps account of the order in which things changed."""

    def __init__(self) -> None:
        super().__init__()
        self.revisions: Revisions[FeedKey] = Revisions()

    def loaded(self, cluster: Cluster) -> None:
        """Hear of a cluster that was made from records: anything may be other than before."""
        for project in cluster.projects:
            self._project(cluster, project)
        for node in cluster.nodes:
            self._node(cluster, node)
        for job in cluster.jobs:
            self._job(cluster, job)
        there: Mapping[FeedPart, Container[str]] = {
            FeedPart.JOBS: cluster.jobs,
            FeedPart.NODES: cluster.nodes,
            FeedPart.PROJECTS: cluster.projects,
        }
        self.revisions.keep_only(lambda key: key.name in there[key.part])
        cluster.load.take_touched()
        self.fire(ANY_RECORD)

    def turned(
        self, cluster: Cluster, changes: Iterable[Change], effects: Iterable[Effect], retold: Iterable[JobId]
    ) -> None:
        """Hear of a turn that is durable; `retold`: jobs that wait for another reason than before."""
        before = self.revisions.newest
        for change in changes:
            if isinstance(change, Put) and isinstance(change.record, Project):
                self._project(cluster, change.record.name)
            elif isinstance(change, DropProject):
                self._project(cluster, change.project)
        for node in cluster.load.take_touched():
            self._node(cluster, node)
        told = dict.fromkeys(retold)
        told.update(dict.fromkeys(effect.job for effect in effects if isinstance(effect, AnnounceJob)))
        for job in told:
            self._job(cluster, job)
        if self.revisions.newest != before:
            self.fire(ANY_RECORD)

    def _job(self, cluster: Cluster, name: JobId) -> None:
        record = cluster.jobs.get(name)
        self._noted(FeedKey(FeedPart.JOBS, name), None if record is None else record.spec.project)

    def _node(self, cluster: Cluster, name: NodeId) -> None:
        self._noted(FeedKey(FeedPart.NODES, name), "" if name in cluster.nodes else None)

    def _project(self, cluster: Cluster, name: str) -> None:
        self._noted(FeedKey(FeedPart.PROJECTS, name), name if name in cluster.projects else None)

    def _noted(self, key: FeedKey, scope: str | None) -> None:
        if scope is None:
            self.revisions.note_gone(key)
        else:
            self.revisions.note(key, scope)
