"""What Prometheus is told of a fleet, from values."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from console.telemetry.exposition import Metric, exposition
from console.telemetry.fleet_metrics import gpu_state, of_fleet
from console.telemetry.node_metrics import of_nodes
from muster.domain.fleet.node import Gpu, Inventory, NodeState, NodeView
from muster.domain.fleet.quota import NO_AMOUNTS, UNLIMITED_AMOUNT, Amounts, QuotaUnit, UnitKind
from muster.domain.fleet.standing_view import PoolStandingView, QueueLine, UnitStandingView
from muster.domain.ids import ExecutionId, GpuUuid, JobId, NodeId
from muster.domain.jobs.job_class import JobClass
from muster.domain.telemetry.sample import ExecutionUse, GpuUse, HostUse, NodeSample, Sample

NOW = datetime(2026, 11, 27, 9, tzinfo=UTC)
GPUS = tuple(Gpu(uuid=GpuUuid(f"g{index}"), index=index, model="H100", memory=80 << 30) for index in range(4))
NODE = NodeView(
    name=NodeId("a"),
    state=NodeState.READY,
    address="10.0.0.1",
    inventory=Inventory(cpus=16, memory=1 << 36, gpus=GPUS),
    gpus_taken=(GpuUuid("g0"), GpuUuid("g1")),
    pool="h100",
)
USES = (
    (GpuUuid("g0"), GpuUse(busy=0.9, memory=1 << 30)),
    (GpuUuid("g1"), GpuUse(busy=0.0)),
    (GpuUuid("g2"), GpuUse(busy=0.5)),
    (GpuUuid("g3"), GpuUse()),
)
SAMPLE = NodeSample(NODE.name, Sample(at=NOW, span=timedelta(seconds=10), host=HostUse(cpus=3.5), gpus=USES))


def told(*metrics: Metric) -> list[str]:
    return [line for line in "".join(exposition(metrics)).splitlines() if not line.startswith("#")]


def test_a_metric_says_what_it_is_and_what_each_thing_has() -> None:
    metric = Metric("muster_x", "Some\nthing.")
    metric.add(2, a="x")
    metric.add(None, a="y")
    metric.add(0.25)
    text = "".join(exposition([metric, Metric("muster_nothing", "None.")]))
    assert text == '# HELP muster_x Some\\nthing.\n# TYPE muster_x gauge\nmuster_x{a="x"} 2\nmuster_x 0.25\n'


def test_text_of_others_cannot_end_a_label() -> None:
    metric = Metric("muster_x", "x")
    metric.add(1, name='a"} 9\nmuster_y 7 \\')
    assert told(metric) == ['muster_x{name="a\\"} 9\\nmuster_y 7 \\\\"} 1']


def test_many_lines_come_in_pieces() -> None:
    metric = Metric("muster_x", "x")
    for number in range(4500):
        metric.add(number, n=str(number))
    pieces = list(exposition([metric]))
    assert len(pieces) == 3
    assert "".join(pieces).count("\n") == 4502


@pytest.mark.parametrize(
    ("gpu", "use", "state"),
    [
        (GPUS[0], GpuUse(busy=0.9), "computing"),
        (GPUS[0], GpuUse(busy=0.01), "idle"),
        (GPUS[0], None, "computing"),
        (GPUS[2], GpuUse(busy=0.0), "free"),
        (GPUS[2], None, "free"),
        (GPUS[2], GpuUse(busy=0.9), "outside"),
        (replace(GPUS[2], problems=("fell off the bus",)), None, "broken"),
    ],
)
def test_a_gpu_is_in_one_state(gpu: Gpu, use: GpuUse | None, state: str) -> None:
    assert gpu_state(NODE, gpu, use) == state


def test_gpus_of_a_silent_node_are_unreachable() -> None:
    silent = replace(NODE, state=next(state for state in NodeState if state is not NodeState.READY))
    assert gpu_state(silent, GPUS[0], None) == "unreachable"


def test_the_fleet_is_counted_by_pool() -> None:
    lines = told(*of_fleet([NODE, replace(NODE, name=NodeId("b"))], [SAMPLE], [], [], NOW))
    assert lines == [
        'muster_nodes{pool="h100",state="ready"} 2',
        'muster_gpus{pool="h100",model="H100",state="computing"} 3',
        'muster_gpus{pool="h100",model="H100",state="free"} 3',
        'muster_gpus{pool="h100",model="H100",state="idle"} 1',
        'muster_gpus{pool="h100",model="H100",state="outside"} 1',
    ]


def test_projects_have_what_they_hold_and_no_bound_is_no_number() -> None:
    bounds = Amounts(UNLIMITED_AMOUNT, 2000, 1024)
    standing = PoolStandingView(
        pool="h100",
        quota=bounds,
        limit=bounds,
        weight=1,
        rank=0,
        share=NO_AMOUNTS,
        held=Amounts(1500, 0, 512),
        guaranteed=NO_AMOUNTS,
        waiting=NO_AMOUNTS,
    )
    units = [
        UnitStandingView(unit=QuotaUnit(name="vision", kind=UnitKind.PROJECT), running=2, queued=1, pools=(standing,)),
        UnitStandingView(unit=QuotaUnit(name="research", kind=UnitKind.DEPARTMENT), running=9, pools=(standing,)),
    ]
    lines = told(*of_fleet([], [], units, [], NOW))
    assert 'muster_project_jobs{project="vision",state="running"} 2' in lines
    assert 'muster_project_gpus{project="vision",pool="h100",what="held"} 1.5' in lines
    assert 'muster_project_memory_bytes{project="vision",pool="h100",what="held"} 536870912' in lines
    assert 'muster_project_cpus{project="vision",pool="h100",what="quota"} 2' in lines
    assert not any('what="quota"' in line for line in lines if line.startswith("muster_project_gpus"))
    assert not any("research" in line for line in lines)


def test_the_queue_is_counted_by_pool_and_reason() -> None:
    def line(number: int, reason: str, waited: timedelta) -> QueueLine:
        return QueueLine(
            position=number,
            job=JobId(f"j{number}"),
            name="x",
            project="vision",
            owner="ada",
            pool="h100",
            job_class=JobClass.PREEMPTIBLE,
            priority=0,
            tier="quota",
            size=Amounts(8000, 0, 0),
            since=NOW - waited,
            reason=reason,
        )

    queue = [line(1, "room", timedelta(hours=2)), line(2, "room", timedelta(minutes=1)), line(3, "quota", timedelta())]
    assert told(*of_fleet([], [], [], queue, NOW)) == [
        'muster_queue_jobs{pool="h100",reason="quota"} 1',
        'muster_queue_jobs{pool="h100",reason="room"} 2',
        'muster_queue_gpus{pool="h100"} 24',
        'muster_queue_oldest_seconds{pool="h100"} 7200',
    ]


def test_what_nobody_tells_of_a_node_is_left_out() -> None:
    lines = told(*of_nodes([NODE], [SAMPLE]))
    assert 'muster_gpu_busy_ratio{node="a",gpu="0",uuid="g0"} 0.90000000000000002' in lines
    assert not any(line.startswith("muster_gpu_busy_ratio") and 'gpu="3"' in line for line in lines)
    assert 'muster_gpu_allocated{node="a",gpu="2",uuid="g2"} 0' in lines
    assert 'muster_node_cpus_busy{node="a"} 3.5' in lines
    assert not any(line.startswith("muster_node_network") for line in lines)
    silent = told(*of_nodes([NODE], []))
    assert 'muster_node_up{node="a",pool="h100"} 1' in silent
    assert not any("busy" in line for line in silent)


def test_an_execution_is_named_by_its_job_attempt_and_rank() -> None:
    sample = replace(SAMPLE.sample, executions=((ExecutionId("kx-2-1"), ExecutionUse(cpus=1.5, processes=3)),))
    lines = told(*of_nodes([NODE], [NodeSample(NODE.name, sample)]))
    assert 'muster_execution_cpus_busy{node="a",job="kx",attempt="2",rank="1"} 1.5' in lines
    assert 'muster_execution_processes{node="a",job="kx",attempt="2",rank="1"} 3' in lines
