"""The coordinator itself, for Prometheus."""

from datetime import UTC, datetime

from console.telemetry.coordinator_metrics import of_coordinator
from console.telemetry.exposition import exposition
from muster.domain.telemetry.coordinator_figures import COMMIT_BOUNDS, CoordinatorFigures

FIGURES = CoordinatorFigures(
    began=datetime(2026, 11, 28, tzinfo=UTC),
    turns=9,
    commits=(3, 2, *[0] * (len(COMMIT_BOUNDS) - 2), 1),
    commit_seconds=6.5,
    waiting=4,
    streams=2,
    memory=2**26,
    cpu_seconds=1.25,
)


def test_every_figure_is_a_metric() -> None:
    told = [line for line in "".join(exposition(of_coordinator(FIGURES))).splitlines() if not line.startswith("#")]

    assert [line for line in told if "bucket" not in line] == [
        "muster_coordinator_turns_total 9",
        "muster_coordinator_inbox 4",
        "muster_coordinator_streams 2",
        "muster_coordinator_resident_bytes 67108864",
        "muster_coordinator_cpu_seconds_total 1.25",
        "muster_coordinator_start_time_seconds 1795824000",
        "muster_coordinator_commit_seconds_sum 6.5",
        "muster_coordinator_commit_seconds_count 6",
    ]


def test_commits_are_counted_up_to_each_bound() -> None:
    told = [line for line in "".join(exposition(of_coordinator(FIGURES))).splitlines() if "_bucket{" in line]

    assert told[:2] == [
        'muster_coordinator_commit_seconds_bucket{le="0.001"} 3',
        'muster_coordinator_commit_seconds_bucket{le="0.002"} 5',
    ]
    assert told[-2:] == [
        'muster_coordinator_commit_seconds_bucket{le="5.0"} 5',
        'muster_coordinator_commit_seconds_bucket{le="+Inf"} 6',
    ]
