"""The coordinator's core by itself: scheduling cycles at scale, and what one event costs as fleet and queue grow.

Pure: no clock, network or store. Nodes have eight GPUs and are full, with gangs that hold eight nodes each; queued jobs
are of forty different request classes, and the first of them wants half of the fleet.
"""

import gc
import math
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from bench.figures import Bar
from bench.programs import ProgramError
from bench.setting import Setting
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.events import (
    Event,
    ExecutionsReported,
    HeartbeatReceived,
    JobSubmitted,
    NodeConnected,
    TimePassed,
)
from coordinator.core.loading import load
from coordinator.core.records import Execution
from coordinator.core.scheduling.cycle import schedule
from coordinator.core.step import finish, step
from coordinator.core.turn.turn import Turn
from muster.domain.fleet.access import Project
from muster.domain.fleet.node import Gpu, Inventory, RuntimeOffer
from muster.domain.gangs.plan import Report, Stage
from muster.domain.gangs.roster import MASTER_PORT_NAME, PortLease
from muster.domain.ids import AttemptId, ExecutionId, GpuUuid, JobId, NodeId
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.job import DEFAULT_PROJECT, JobSpec, Resources, Role, RuntimeKind

BEGAN = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
GPUS = 8
GANG = 8
COUNTS = 5
"""Queued jobs have so many sizes, and each size with one to eight GPUs."""
NODES, QUEUED = 5000, 10_000
FLEETS = (50, 150, 500, 1500, 5000)
QUEUES = (100, 1000, 10_000, 100_000)
NOTHING_BAR = Bar(figure="scheduling cycle, 5,000 nodes, 10,000 queued jobs: nothing changed", limit=5, unit="ms")
SUBMIT_BAR = Bar(figure="scheduling cycle, 5,000 nodes, 10,000 queued jobs: one job submitted", limit=10, unit="ms")
SLOPE = 0.15
"""Most slope of a log-log fit: what does not depend on size has 0, what is proportional to it has 1."""
CYCLE = "scheduling cycle, nothing changed"
"""No event, and so without a bar for its slope; what it may take is said for 5,000 nodes and 10,000 jobs."""


class Fleet:
    """A cluster with all its nodes busy."""

    def __init__(self, nodes: int) -> None:
        self.cluster: Cluster = load((Project(name=DEFAULT_PROJECT, created_at=BEGAN),), BEGAN)
        self.now = BEGAN
        self.jobs = 0
        self.nodes = [NodeId(f"node{number}") for number in range(nodes)]
        self.take(*(_connected(name, number) for number, name in enumerate(self.nodes)))
        for first in range(0, nodes, GANG):
            self.submit(min(GANG, nodes - first), GPUS)

    def take(self, *events: Event) -> None:
        """One turn of the engine, less the commit."""
        self.now += timedelta(milliseconds=1)
        turn = Turn(self.cluster, self.now)
        for event in events:
            step(turn, event)
        finish(turn)
        turn.changes()
        turn.take_effects()

    def submit(self, count: int, gpus: int) -> JobId:
        """A job."""
        event = self.submitted(count, gpus)
        self.take(event)
        return event.job

    def submitted(self, count: int, gpus: int) -> JobSubmitted:
        """What a client asks for."""
        self.jobs += 1
        role = Role(count=count, command=("train",), resources=Resources(gpus=gpus, cpu_millis=1000 * gpus))
        spec = JobSpec(name=f"train-{self.jobs}", project=DEFAULT_PROJECT, roles=(role,))
        return JobSubmitted(job=JobId(f"j{self.jobs}"), spec=spec)

    def queue(self, jobs: int) -> None:
        """So many jobs that wait, all taken in with one turn."""
        # The first wants most of the fleet: it is the head for which capacity is kept. Only the first, as a coordinator
        # that keeps too many executions takes no more, and what would be measured then is a refusal.
        self.take(
            self.submitted(max(GANG, len(self.nodes) // 2), GPUS),
            *(self.submitted(1 + number % COUNTS, 1 + number // COUNTS % GPUS) for number in range(jobs - 1)),
        )
        if len(self.cluster.queue) != jobs:
            raise ProgramError(f"{len(self.cluster.queue)} of {jobs} jobs wait")

    def run_gang(self) -> JobId:
        """The first gang runs on its nodes."""
        first = JobId("j1")
        for stage in (Stage.PREPARED, Stage.ARMED, Stage.RUNNING):
            for member in list(self.cluster.gangs.members(AttemptId(first, 1))):
                self.take(reported(member, stage))
        return first


def reported(member: Execution, stage: Stage) -> ExecutionsReported:
    """An agent says how far an execution is."""
    assert member.node is not None
    report = Report(
        execution=ExecutionId(member.id),
        stage=stage,
        at=BEGAN,
        address="10.0.0.1",
        ports=(PortLease(name=MASTER_PORT_NAME, host_port=20000, container_port=20000),),
        exit=Exit(code=0) if stage is Stage.EXITED else None,
        log_complete=stage is Stage.EXITED,
    )
    return ExecutionsReported(node=member.node, reports=(report,))


def inventory(node: str, gpus: int = GPUS) -> Inventory:
    """A node with GPUs and processes."""
    offered = tuple(
        Gpu(uuid=GpuUuid(f"GPU-{node}-{index}"), index=index, model="NVIDIA H100", memory=80 * 2**30)
        for index in range(gpus)
    )
    runtimes = (RuntimeOffer(kind=RuntimeKind.PROCESS),)
    return Inventory(cpus=64, memory=2**39, gpus=offered, runtimes=runtimes)


def _connected(node: NodeId, number: int) -> NodeConnected:
    return NodeConnected(
        node=node,
        session=number + 1,
        identity=node,
        version="bench",
        address=f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}",
        inventory=inventory(node),
    )


async def measure(setting: Setting) -> None:
    """Cycles, then cost against size."""
    await setting.quiet(f"core: {NODES} nodes, {QUEUED} queued jobs")
    _cycles(setting)
    await setting.quiet("core: cost of one event against fleet and queue")
    fleets = FLEETS[:-1] if setting.quick else FLEETS
    queues = QUEUES[:-1] if setting.quick else QUEUES
    _curve(setting, "nodes", fleets, lambda size: (size, 1000))
    _curve(setting, "queued jobs", queues, lambda size: (500, size))


def _cycles(setting: Setting) -> None:
    it, repeats = _busy(NODES, QUEUED), setting.repeats(30, 10)

    def cycle() -> None:
        schedule(Turn(it.cluster, it.now))

    found = {
        "nothing changed": timed(repeats, cycle),
        "one job submitted": timed(repeats, lambda: it.submit(3, GPUS)),
        "time passed": timed(repeats, lambda: it.take(TimePassed())),
        "heartbeat": timed(repeats, lambda: it.take(_heartbeat(it))),
        "one job ended": timed(5, _ends_and_next(it), warm=0),
    }
    for name, values in found.items():
        setting.findings.take(f"cycle {NODES} nodes {QUEUED} queued: {name}", values, "ms")
    setting.findings.absolute(NOTHING_BAR, f"cycle {NODES} nodes {QUEUED} queued: nothing changed")
    setting.findings.absolute(SUBMIT_BAR, f"cycle {NODES} nodes {QUEUED} queued: one job submitted")


def _busy(nodes: int, queued: int) -> Fleet:
    """A full fleet and a queue, with its objects out of the garbage collector's sight, as in a process that is warm."""
    it = Fleet(nodes)
    it.queue(queued)
    gc.collect()
    gc.freeze()
    return it


def _ends_and_next(it: Fleet) -> Callable[[], None]:
    """The members of a gang end in one turn; what came free goes to the next."""
    ending = iter(range(1, len(it.nodes) // GANG))

    def end() -> None:
        attempt_id = AttemptId(JobId(f"j{next(ending)}"), 1)
        it.take(*(reported(member, Stage.EXITED) for member in it.cluster.gangs.members(attempt_id)))

    return end


def _heartbeat(it: Fleet) -> HeartbeatReceived:
    node = it.nodes[it.jobs % len(it.nodes)]
    return HeartbeatReceived(node=node, plan_revision=it.cluster.presence[node].plan_revision)


def timed(repeats: int, action: Callable[[], object], warm: int = 2) -> list[float]:
    """Milliseconds of each."""
    for _ in range(warm):
        action()
    found = []
    for _ in range(repeats):
        began = time.perf_counter()
        action()
        found.append((time.perf_counter() - began) * 1000)
    return found


def _curve(setting: Setting, axis: str, sizes: Sequence[int], fleet_of: Callable[[int], tuple[int, int]]) -> None:
    """Each event at each size; the slope of the medians on logarithmic scales."""
    medians: dict[str, list[float]] = {}
    repeats = setting.repeats(30, 10)
    for size in sizes:
        it = _busy(*fleet_of(size))
        running = it.run_gang()
        member = next(iter(it.cluster.gangs.members(AttemptId(running, 1))))
        events: dict[str, Callable[[], object]] = {
            "heartbeat": lambda it=it: it.take(_heartbeat(it)),  # type: ignore[misc]  # mypy infers no types of defaults in lambdas
            "report that says nothing new": lambda it=it, member=member: it.take(reported(member, Stage.RUNNING)),  # type: ignore[misc]  # mypy infers no types of defaults in lambdas
            "submit of a job that must wait": lambda it=it: it.submit(3, GPUS),  # type: ignore[misc]  # mypy infers no types of defaults in lambdas
            "end of a gang, next one placed": _ends_and_next(it),
            CYCLE: lambda it=it: schedule(Turn(it.cluster, it.now)),  # type: ignore[misc]  # mypy infers no types of defaults in lambdas
        }
        for name, action in events.items():
            ends = name.startswith("end")
            values = timed(5 if ends else repeats, action, warm=0 if ends else 2)
            series = setting.findings.take(f"event, {size} {axis}: {name}", values, "ms")
            medians.setdefault(name, []).append(series.median)
        gc.unfreeze()
    for name, values in medians.items():
        limit = None if name == CYCLE else SLOPE
        bar = Bar(figure=f"cost of one event against {axis}, slope: {name}", limit=limit)
        setting.findings.judge(bar, slope(sizes, values), f"event … {axis}: {name}")


def slope(sizes: Sequence[float], values: Sequence[float]) -> float:
    """The slope of the straight line through the points on logarithmic scales."""
    xs, ys = [math.log(size) for size in sizes], [math.log(value) for value in values]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    above = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    return above / sum((x - mean_x) ** 2 for x in xs)
