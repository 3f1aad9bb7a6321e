"""Attempts and starts of gangs are counted from events, for Prometheus."""

from datetime import UTC, datetime, timedelta

from console.telemetry.exposition import Metric, exposition
from console.telemetry.runs.run_counts import MOST_STARTING, RunCounts
from muster.domain.event import JobEvent, JobEventKind, NodeEvent, NodeEventKind
from muster.domain.ids import JobId, NodeId
from muster.domain.notifications.happening import EventPlace, Happening, ToldJob

NOW = datetime(2026, 11, 27, 9, tzinfo=UTC)


def happening(kind: JobEventKind, seconds: float = 0.0, *, job: str = "k3", attempt: int = 1) -> Happening:
    event = JobEvent(job=JobId(job), attempt=attempt, kind=kind, at=NOW + timedelta(seconds=seconds), text="")
    told = ToldJob(id=JobId(job), name="train", project="vision", owner="ada")
    return Happening(event=event, place=EventPlace(), fleet="f", job=told)


def lines(metrics: tuple[Metric, ...], *, of: str) -> list[str]:
    told = "".join(exposition(metrics)).splitlines()
    return [line for line in told if line.startswith(of) and not line.startswith("#")]


def test_attempts_are_counted_by_how_they_ended() -> None:
    runs = RunCounts()

    for kind in (JobEventKind.ATTEMPT_FAILED, JobEventKind.SUCCEEDED, JobEventKind.FAILED, JobEventKind.STOPPED):
        runs.hear([happening(kind)])
    runs.hear([happening(JobEventKind.SUCCEEDED, job="k4")])

    assert lines(runs.metrics(None), of="muster_attempts_total") == [
        'muster_attempts_total{project="vision",result="failed"} 1',
        'muster_attempts_total{project="vision",result="repeated"} 1',
        'muster_attempts_total{project="vision",result="stopped"} 1',
        'muster_attempts_total{project="vision",result="succeeded"} 2',
    ]


def test_attempts_of_other_projects_are_not_told() -> None:
    runs = RunCounts()
    runs.hear([happening(JobEventKind.SUCCEEDED)])

    assert lines(runs.metrics({"speech"}), of="muster_attempts_total") == []
    assert len(lines(runs.metrics({"vision"}), of="muster_attempts_total")) == 1


def test_each_step_of_a_start_is_a_histogram_of_its_own() -> None:
    runs = RunCounts()
    start = (JobEventKind.PLACED, JobEventKind.PREPARING, JobEventKind.CHECKED_IN, JobEventKind.RELEASED)

    runs.hear([happening(kind, seconds) for kind, seconds in zip(start, (0, 0.1, 2.0, 2.02), strict=True)])
    runs.hear([happening(JobEventKind.RUNNING, 2.25)])

    metrics = runs.metrics(None)
    assert lines(metrics, of="muster_rendezvous_seconds_sum") == [
        'muster_rendezvous_seconds_sum{step="prepared"} 2',
        'muster_rendezvous_seconds_sum{step="armed"} 0.02',
        'muster_rendezvous_seconds_sum{step="started"} 0.23000000000000001',
    ]
    buckets = lines(metrics, of='muster_rendezvous_seconds_bucket{step="prepared"')
    assert [line.partition("le=")[2] for line in buckets[4:7]] == ['"1.0"} 0', '"3.0"} 1', '"10.0"} 1']
    assert buckets[-1].endswith('le="+Inf"} 1')


def test_a_start_that_did_not_come_to_its_end_counts_as_far_as_it_came() -> None:
    runs = RunCounts()

    runs.hear([happening(JobEventKind.PLACED), happening(JobEventKind.CHECKED_IN, 1)])
    runs.hear([happening(JobEventKind.FAILED, 2), happening(JobEventKind.RELEASED, 3)])

    counts = lines(runs.metrics(None), of="muster_rendezvous_seconds_count")
    assert [line.rpartition(" ")[2] for line in counts] == ["1", "0", "0"]


def test_only_so_many_starts_are_remembered() -> None:
    runs = RunCounts()

    runs.hear([happening(JobEventKind.PLACED, job=f"j{number}") for number in range(MOST_STARTING + 1)])
    runs.hear([happening(JobEventKind.CHECKED_IN, 1, job=job) for job in ("j1", "j0")])

    assert lines(runs.metrics(None), of='muster_rendezvous_seconds_count{step="prepared"') == [
        'muster_rendezvous_seconds_count{step="prepared"} 1'
    ]


def test_what_happens_to_nodes_is_not_counted() -> None:
    runs = RunCounts()
    event = NodeEvent(node=NodeId("a"), kind=NodeEventKind.LOST, at=NOW, text="")

    runs.hear([Happening(event=event, place=EventPlace(), fleet="f")])

    assert lines(runs.metrics(None), of="muster_attempts_total") == []
