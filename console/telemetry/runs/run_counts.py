"""How attempts have ended, and how long gangs took to start: counted from what happened, from some time on; pure."""

from collections import Counter
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import NamedTuple

from console.telemetry.exposition import Metric, MetricKind, Times, histogram
from muster.domain.event import JobEvent, JobEventKind
from muster.domain.ids import AttemptId
from muster.domain.notifications.happening import Happening
from muster.domain.telemetry.counted_times import CountedTimes

RENDEZVOUS_BOUNDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0, 180.0, 600.0)
"""Seconds up to which starts of gangs are counted together."""
MOST_STARTING = 20_000
"""Attempts whose start goes on that are remembered; beyond, the oldest are forgotten and not counted."""
_RESULTS = {
    JobEventKind.SUCCEEDED: "succeeded",
    JobEventKind.FAILED: "failed",
    JobEventKind.STOPPED: "stopped",
    JobEventKind.ATTEMPT_FAILED: "repeated",
}
_STEPS = {
    (JobEventKind.PLACED, JobEventKind.CHECKED_IN): "prepared",
    (JobEventKind.CHECKED_IN, JobEventKind.RELEASED): "armed",
    (JobEventKind.RELEASED, JobEventKind.RUNNING): "started",
}
_KINDS = {kind for step in _STEPS for kind in step}


class _Reached(NamedTuple):
    kind: JobEventKind
    at: datetime


class RunCounts:
    """Attempts by how they have ended, and starts by how long their steps took."""

    def __init__(self) -> None:
        self._ended: Counter[tuple[str, str]] = Counter()
        self._starting: dict[AttemptId, _Reached] = {}
        self._steps = {step: CountedTimes(RENDEZVOUS_BOUNDS) for step in _STEPS.values()}

    def hear(self, happenings: Iterable[Happening]) -> None:
        """Count what happened; each event comes once, and those of a job in order."""
        for each in happenings:
            event = each.event
            if not isinstance(event, JobEvent):
                continue
            if event.kind in _KINDS:
                self._reach(event)
            result = _RESULTS.get(event.kind)
            if result is not None:
                self._starting.pop(AttemptId(event.job, event.attempt), None)
                self._ended["" if each.job is None else each.job.project, result] += 1

    def metrics(self, projects: Collection[str] | None) -> tuple[Metric, ...]:
        """What Prometheus is told, of these projects; None: of all."""
        attempts = Metric(
            "muster_attempts_total",
            "Attempts that have ended since this console began, by project and result; repeated ones have followers.",
            MetricKind.COUNTER,
        )
        for (project, result), count in sorted(self._ended.items()):
            if projects is None or project in projects:
                attempts.add(count, project=project, result=result)
        said = "Time that the steps of the start of a gang took: prepared, armed, started."
        steps = (Times(taken.counts, taken.seconds, {"step": step}) for step, taken in self._steps.items())
        return (attempts, *histogram("muster_rendezvous_seconds", said, RENDEZVOUS_BOUNDS, steps))

    def _reach(self, event: JobEvent) -> None:
        attempt = AttemptId(event.job, event.attempt)
        before = self._starting.pop(attempt, None)
        step = None if before is None else _STEPS.get((before.kind, event.kind))
        if before is not None and step is not None:
            self._steps[step].add((event.at - before.at).total_seconds())
        if event.kind is JobEventKind.RUNNING:
            return
        self._starting[attempt] = _Reached(event.kind, event.at)
        while len(self._starting) > MOST_STARTING:
            del self._starting[next(iter(self._starting))]
