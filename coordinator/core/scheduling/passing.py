"""Jobs that may have seats which are kept for the head of the queue: they have ended before it could start there.

All that holds these seats has ended by some time for sure, if all of it has a limit on run time. A job whose check-in,
limit and grace end sooner delays the head in no case. How long jobs take as a rule counts for nothing here.
"""

from datetime import datetime, timedelta
from functools import cached_property

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.placement.request_classes import RequestClass
from muster.domain.jobs.job import JobSpec


class Passing:
    """The answer of one look at the queue; what is placed meanwhile makes it no other."""

    def __init__(self, cluster: Cluster, now: datetime) -> None:
        self._cluster = cluster
        self._now = now
        self._classes = cluster.queue.lines.ending_classes

    @property
    def is_possible(self) -> bool:
        """Whether any job that waits ends by itself."""
        return bool(self._classes)

    @cached_property
    def within(self) -> timedelta | None:
        """How soon a job must have ended that is placed there now; None: nobody may be."""
        by = self._cluster.load.head.free_by
        return None if by is None or by <= self._now else by - self._now

    def has(self, request_class: RequestClass) -> bool:
        """Whether there may be such jobs in a class, and room for one of their executions."""
        if request_class not in self._classes or self.within is None:
            return False
        return self._cluster.load.head.has_room(request_class, lambda: self._spec_of(request_class))

    def _spec_of(self, request_class: RequestClass) -> JobSpec:
        _, (_, job) = next(self._cluster.queue.lines.of_class(request_class))
        return self._cluster.jobs[job].spec

    def lets(self, spec: JobSpec) -> bool:
        """Whether a job ends soon enough."""
        takes = spec.ends_within
        return takes is not None and self.within is not None and takes <= self.within
