"""The metrics of a console itself, and how many alerts there are; pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from console.telemetry.exposition import Metric, MetricKind, metric_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleFigures:
    """A console at a moment; what is counted begins anew with it."""

    mirror_current: bool | None = None
    """Whether it has heard of the coordinator just now; None: it has no mirror."""
    mirror_age: float | None = None
    """Seconds since it has heard of the coordinator; None: it never has."""
    viewers: int = 0
    """Live streams that are open."""
    requests: Mapping[int, int] = field(default_factory=dict)
    """How many requests were answered with each status."""
    tries: Mapping[tuple[str, bool], int] = field(default_factory=dict)
    """How often events were sent to targets of each kind, and whether these took them."""
    certificate_ends: datetime | None = None
    """When the certificate ends that it shows; None: it shows none."""
    alerts: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """How many alerts of each kind and severity go on, of those that whoever asks may see."""


def of_console(figures: ConsoleFigures) -> tuple[Metric, ...]:
    """What Prometheus is told of a console."""
    requests = Metric(
        "muster_console_requests_total", "Requests that this console has answered, by status.", MetricKind.COUNTER
    )
    for code, count in sorted(figures.requests.items()):
        requests.add(count, code=str(code))
    tries = Metric(
        "muster_console_deliveries_total",
        "How often this console has sent an event, by kind of target and result: taken, or failed.",
        MetricKind.COUNTER,
    )
    for (target, taken), count in sorted(figures.tries.items()):
        tries.add(count, target=target, result="taken" if taken else "failed")
    going_on = Metric("muster_alerts", "Alerts that go on, by kind and severity.")
    for (kind, severity), count in sorted(figures.alerts.items()):
        going_on.add(count, kind=kind, severity=severity)
    return (
        metric_of(
            "muster_console_mirror_current",
            "Whether this console has heard of the coordinator just now.",
            figures.mirror_current,
        ),
        metric_of(
            "muster_console_mirror_age_seconds",
            "Time since this console has heard of the coordinator.",
            figures.mirror_age,
        ),
        metric_of(
            "muster_console_viewers",
            "Live streams that people and programs have open at this console.",
            figures.viewers,
        ),
        requests,
        tries,
        metric_of(
            "muster_console_certificate_end_time_seconds",
            "When the certificate ends that this console shows, in seconds since 1970.",
            None if figures.certificate_ends is None else figures.certificate_ends.timestamp(),
        ),
        going_on,
    )
