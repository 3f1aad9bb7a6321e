"""The metrics of the coordinator itself."""

from console.telemetry.exposition import Metric, MetricKind, Times, histogram
from muster.domain.telemetry.coordinator_figures import COMMIT_BOUNDS, CoordinatorFigures


def of_coordinator(figures: CoordinatorFigures) -> tuple[Metric, ...]:
    """What Prometheus is told of a coordinator; what is counted begins anew with it."""
    turns = Metric(
        "muster_coordinator_turns_total",
        "How often the coordinator took in all that stood in line for it.",
        MetricKind.COUNTER,
    )
    turns.add(figures.turns)
    inbox = Metric("muster_coordinator_inbox", "Events and questions that stand in line for the coordinator.")
    inbox.add(figures.waiting)
    streams = Metric("muster_coordinator_streams", "Streams of agents that the coordinator has open.")
    streams.add(figures.streams)
    memory = Metric("muster_coordinator_resident_bytes", "Bytes of the coordinator that are in memory.")
    memory.add(figures.memory)
    cpu = Metric("muster_coordinator_cpu_seconds_total", "Time that the coordinator has worked.", MetricKind.COUNTER)
    cpu.add(figures.cpu_seconds)
    began = Metric("muster_coordinator_start_time_seconds", "When the coordinator began, in seconds since 1970.")
    began.add(figures.began.timestamp())
    commits = histogram(
        "muster_coordinator_commit_seconds",
        "Time that the coordinator took to make something durable.",
        COMMIT_BOUNDS,
        [Times(figures.commits, figures.commit_seconds)],
    )
    return (turns, inbox, streams, memory, cpu, began, *commits)
