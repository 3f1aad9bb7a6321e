"""The metrics of the coordinator itself."""

from console.telemetry.exposition import Metric, MetricKind, Times, histogram, metric_of
from muster.domain.telemetry.coordinator_figures import COMMIT_BOUNDS, CoordinatorFigures


def of_coordinator(figures: CoordinatorFigures) -> tuple[Metric, ...]:
    """What Prometheus is told of a coordinator; what is counted begins anew with it."""
    commits = histogram(
        "muster_coordinator_commit_seconds",
        "Time that the coordinator took to make something durable.",
        COMMIT_BOUNDS,
        [Times(figures.commits, figures.commit_seconds)],
    )
    return (
        metric_of(
            "muster_coordinator_turns_total",
            "How often the coordinator took in all that stood in line for it.",
            figures.turns,
            MetricKind.COUNTER,
        ),
        metric_of(
            "muster_coordinator_inbox", "Events and questions that stand in line for the coordinator.", figures.waiting
        ),
        metric_of("muster_coordinator_streams", "Streams of agents that the coordinator has open.", figures.streams),
        metric_of("muster_coordinator_resident_bytes", "Bytes of the coordinator that are in memory.", figures.memory),
        metric_of(
            "muster_coordinator_cpu_seconds_total",
            "Time that the coordinator has worked.",
            figures.cpu_seconds,
            MetricKind.COUNTER,
        ),
        metric_of(
            "muster_coordinator_start_time_seconds",
            "When the coordinator began, in seconds since 1970.",
            figures.began.timestamp(),
        ),
        *commits,
    )
