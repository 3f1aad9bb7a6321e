"""What of a submitted job can be made other than it is."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.placing.pool_choice import PoolChoice
from muster.domain.quantity import format_duration

WITHOUT_LIMIT = timedelta()
"""The change of a limit that takes it away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobChange:
    """What is to be other than it is; None: it stays."""

    priority: int | None = None
    run: timedelta | None = None
    """The limit on run time; zero: none."""
    queue: timedelta | None = None
    """The limit on an attempt's time in the queue; zero: none."""
    expected: timedelta | None = None
    """How long user code will run; zero: nobody knows."""
    not_before: datetime | None = None
    """The time before which it does not begin; one that has passed: it may begin at once."""
    job_class: JobClass | None = None
    pools: tuple[PoolChoice, ...] | None = None
    """The pools in which it is placed, in this order; empty: in any."""

    @property
    def is_empty(self) -> bool:
        """Whether it changes nothing."""
        return self == JobChange()

    @property
    def of_placed_jobs(self) -> bool:
        """Whether it can also be made while the job has its nodes."""
        return replace(self, priority=None).is_empty

    def applied(self, spec: JobSpec) -> JobSpec:
        """The job with the change."""
        timeouts = spec.timeouts
        return replace(
            spec,
            priority=spec.priority if self.priority is None else self.priority,
            timeouts=replace(
                timeouts,
                run=_limit(timeouts.run, self.run),
                queue=_limit(timeouts.queue, self.queue),
                expected=_limit(timeouts.expected, self.expected),
            ),
            not_before=self.not_before or spec.not_before,
            job_class=self.job_class or spec.job_class,
            pools=spec.pools if self.pools is None else self.pools,
        )


def differences(before: JobSpec, after: JobSpec) -> Iterator[str]:
    """Each key that a change has made other than it was, with both values: `priority 0 → 10`."""
    told = (
        ("priority", str(before.priority), str(after.priority)),
        ("class", _class(before.job_class), _class(after.job_class)),
        ("pools", _pools(before.pools), _pools(after.pools)),
        ("timeouts.run", _span(before.timeouts.run), _span(after.timeouts.run)),
        ("timeouts.queue", _span(before.timeouts.queue), _span(after.timeouts.queue)),
        ("timeouts.expected", _span(before.timeouts.expected), _span(after.timeouts.expected)),
        ("not_before", _time(before.not_before), _time(after.not_before)),
    )
    return (f"{key} {was} → {now}" for key, was, now in told if was != now)


def _limit(before: timedelta | None, change: timedelta | None) -> timedelta | None:
    return before if change is None else change or None


def _class(job_class: JobClass | None) -> str:
    return "none" if job_class is None else job_class.value


def _pools(pools: tuple[PoolChoice, ...]) -> str:
    return ", ".join(map(str, pools)) or "any"


def _span(span: timedelta | None) -> str:
    return "none" if span is None else format_duration(span)


def _time(at: datetime | None) -> str:
    return "none" if at is None else f"{at:%Y-%m-%dT%H:%M:%SZ}"
