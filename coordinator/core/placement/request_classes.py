"""Request classes: jobs of one class fit or do not fit alike, so a walk along the queue tries one of each."""

from collections.abc import Hashable
from weakref import WeakValueDictionary

from coordinator.core.placement.bins import Capacities
from coordinator.core.records import Job
from muster.domain.fleet.features import needed
from muster.domain.ids import JobId
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.ports import node_ports


class RequestClass:
    """One and the same object for all jobs that are alike in everything that decides whether they fit."""

    __slots__ = ("__weakref__", "_failed")

    def __init__(self) -> None:
        self._failed: dict[Capacities, int] = {}
        """The version of capacities at which none of them found seats there."""

    def fail(self, capacities: Capacities) -> None:
        """Note that no job of this class fits into capacities as they are."""
        self._failed[capacities] = capacities.version

    def fails(self, capacities: Capacities) -> bool:
        """Whether none fits for sure: none did, and since then there was never more room."""
        return self._failed.get(capacities) == capacities.version


class RequestClasses:
    """The request class of each job that waits, worked out once: what a job asks for never changes."""

    def __init__(self) -> None:
        self._classes: dict[JobId, RequestClass] = {}
        self._by_request: WeakValueDictionary[Hashable, RequestClass] = WeakValueDictionary()
        """Classes of jobs that wait, and no others."""

    def __getitem__(self, job: JobId) -> RequestClass:
        return self._classes[job]

    def add(self, job: Job) -> None:
        """Hear that a job begins to wait."""
        self._classes[job.id] = self._by_request.setdefault(_request_of(job.spec), RequestClass())

    def remove(self, job: JobId) -> None:
        """Hear that a job waits no longer."""
        del self._classes[job]


def _request_of(spec: JobSpec) -> Hashable:
    roles = tuple(
        (
            role.count,
            role.resources,
            role.runtime,
            needed(spec, role),
            node_ports(spec, role, 0),
            node_ports(spec, role, 1),
        )
        for role in spec.roles
    )
    return (roles, spec.packing, spec.max_per_node, tuple(sorted(spec.node_labels.items())))
