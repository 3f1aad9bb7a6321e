"""Request classes: jobs of one class fit or do not fit alike, so a walk along the queue tries one of each."""

from collections.abc import Hashable
from weakref import WeakValueDictionary

from coordinator.core.placement.bins import Capacities
from coordinator.core.placement.capacity import Capacity
from coordinator.core.records import Job
from muster.domain.fleet.features import needed
from muster.domain.fleet.quota import Amounts, amounts_of_job
from muster.domain.ids import JobId
from muster.domain.jobs.job import JobSpec, Resources
from muster.domain.jobs.ports import node_ports


class RequestClass:
    """One and the same object for all jobs that are alike in everything that decides whether they fit."""

    __slots__ = ("__weakref__", "_failed", "_needs", "pools", "size")

    def __init__(self, pools: tuple[str, ...] | None, spec: JobSpec) -> None:
        """`spec`: what one of these jobs asks for."""
        self.pools = pools
        """The pools in which they are placed by now, in order; None: in any."""
        self.size: Amounts = amounts_of_job(spec)
        """What each of these jobs counts as a whole."""
        self._needs = tuple(dict.fromkeys(role.resources for role in spec.roles))
        self._failed: dict[Capacities, int] = {}
        """The version of capacities at which none of them found seats there."""

    def fail(self, capacities: Capacities) -> None:
        """Note that no job of this class fits into capacities as they are."""
        self._failed[capacities] = capacities.version

    def try_again(self) -> None:
        """Forget where none fitted."""
        self._failed.clear()

    def fails(self, capacities: Capacities) -> bool:
        """Whether none fits for sure: none did, and no node that has more since then takes one of their executions."""
        failed_at = self._failed.get(capacities)
        if failed_at is None or failed_at == capacities.version:
            return failed_at is not None
        grown = capacities.grown_since(failed_at)
        if grown is None or any(node in capacities and self._may_use(capacities.of(node)) for node in grown):
            del self._failed[capacities]
            return False
        self._failed[capacities] = capacities.version
        return True

    def _may_use(self, capacity: Capacity) -> bool:
        """Whether a node may take an execution; it does not for sure if it has too little."""
        return capacity.problem is None and any(_may_hold(capacity, need) for need in self._needs)


class RequestClasses:
    """The request class of each job that waits, worked out once."""

    def __init__(self) -> None:
        self._classes: dict[JobId, RequestClass] = {}
        self._by_request: WeakValueDictionary[Hashable, RequestClass] = WeakValueDictionary()
        """Classes of jobs that wait, and no others."""
        self._by_times = False

    def __getitem__(self, job: JobId) -> RequestClass:
        return self._classes[job]

    def __contains__(self, job: JobId) -> bool:
        return job in self._classes

    def try_all_again(self) -> None:
        """Forget of all classes where none of their jobs fitted."""
        for request_class in self._by_request.values():
            request_class.try_again()

    def mind_times(self, *, minded: bool) -> bool:
        """Tell jobs of different projects and limits apart from now on, or not; whether that is new."""
        is_new, self._by_times = minded is not self._by_times, minded
        return is_new

    def add(self, job: Job, pools: tuple[str, ...] | None) -> None:
        """Hear that a job waits, and in which pools it is placed by now."""
        request = (_request_of(job.spec), pools, self._times_of(job.spec))
        known = self._by_request.get(request)
        if known is None:
            known = self._by_request[request] = RequestClass(pools, job.spec)
        self._classes[job.id] = known

    def _times_of(self, spec: JobSpec) -> Hashable:
        """What windows look at; nothing where there are none."""
        limit = spec.timeouts.run
        return (spec.project, limit and spec.armed_within + limit) if self._by_times else ()

    def remove(self, job: JobId) -> None:
        """Hear that a job waits no longer."""
        del self._classes[job]


def _may_hold(capacity: Capacity, need: Resources) -> bool:
    return (
        capacity.cpu_millis >= need.cpu_millis
        and capacity.memory >= (need.memory or 0)
        and (need.portion is not None or len(capacity.gpus) >= need.gpus)
    )


def _request_of(spec: JobSpec) -> Hashable:
    roles = tuple(
        (
            role.count,
            role.resources,
            role.resources.gpu_counted,  # which is no part of what is compared, and lets a job be barred
            role.runtime,
            needed(spec, role),
            node_ports(spec, role, 0),
            node_ports(spec, role, 1),
        )
        for role in spec.roles
    )
    return (
        roles,
        spec.packing,
        spec.max_per_node,
        tuple(sorted(spec.node_labels.items())),
        spec.node_types,
        spec.exclude_nodes,
        spec.tolerations,
        spec.affinity,
        spec.topology,
        spec.exclusive,
    )
