"""A cluster with all its nodes busy and jobs that wait, for benchmarks of the core by itself."""

import gc
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from bench.programs import ProgramError
from bench.quiet import counting
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.events import (
    Event,
    ExecutionsReported,
    JobSubmitted,
    NodeConnected,
    TimePassed,
)
from coordinator.core.loading import load
from coordinator.core.records import Execution
from coordinator.core.step import finish, step
from coordinator.core.turn.turn import Turn
from muster.domain.fleet.access import Project
from muster.domain.fleet.node import Gpu, Inventory, RuntimeOffer
from muster.domain.gangs.plan import Report, Stage
from muster.domain.gangs.roster import MASTER_PORT_NAME, PortLease
from muster.domain.ids import AttemptId, ExecutionId, GpuUuid, JobId, NodeId
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.job import DEFAULT_PROJECT, JobSpec, Resources, Role, RuntimeKind, Timeouts

BEGAN = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
GPUS = 8
GANG = 8
NODES, QUEUED = 5000, 10_000
COUNTS = 5
"""Queued jobs have so many sizes, and each size with one to eight GPUs."""


class Fleet:
    """A cluster with all its nodes busy."""

    def __init__(
        self,
        nodes: int,
        inventory_of: Callable[[str, int], Inventory] | None = None,
        run_of: Callable[[int], timedelta | None] = lambda _: None,
        *,
        full: bool = True,
    ) -> None:
        """`inventory_of` gives a node what it has, by name and number; by default all have the same.

        `run_of` gives a job its limit in time, by number; by default none has one.
        `full`: whether gangs hold all nodes.
        """
        self._run_of = run_of
        self.project = DEFAULT_PROJECT
        """The project of jobs that are submitted, where nothing else is said."""
        having = inventory_of or (lambda node, _: inventory(node))
        self.cluster: Cluster = load((Project(name=DEFAULT_PROJECT, created_at=BEGAN),), BEGAN)
        self.now = BEGAN
        self.jobs = 0
        self.nodes = [NodeId(f"node{number}") for number in range(nodes)]
        self.take(*(_connected(name, number, having(name, number)) for number, name in enumerate(self.nodes)))
        for first in range(0, nodes if full else 0, GANG):
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

    def rest(self) -> None:
        """Turns without events until none is due at once, as one looks at some jobs and leaves others to the next.

        A start of a gang leaves much: from then on it is known until when the gang is safe, and so the jobs of all
        projects that found nobody to evict are looked at again.
        """
        while (at := self.cluster.deadlines.next_at) is not None and at <= self.now:
            self.take(TimePassed())

    def submit(self, count: int, gpus: int) -> JobId:
        """A job."""
        event = self.submitted(count, gpus)
        self.take(event)
        return event.job

    def submitted(self, count: int, gpus: int, project: str = "") -> JobSubmitted:
        """What a client asks for."""
        self.jobs += 1
        role = Role(count=count, command=("train",), resources=Resources(gpus=gpus, cpu_millis=1000 * gpus))
        timeouts = Timeouts(run=self._run_of(self.jobs))
        project = project or self.project
        spec = JobSpec(name=f"train-{self.jobs}", project=project, roles=(role,), timeouts=timeouts)
        return JobSubmitted(job=JobId(f"j{self.jobs}"), spec=spec)

    def queue_gangs(self, jobs: int, projects: Sequence[str]) -> None:
        """So many gangs that wait, of these projects in turn, each as large as those that hold the nodes."""
        self.take(*(self.submitted(GANG, GPUS, projects[number % len(projects)]) for number in range(jobs)))
        self._expect(jobs)

    def queue(self, jobs: int, projects: Sequence[str] = (DEFAULT_PROJECT,)) -> None:
        """So many jobs that wait, of these projects in turn, all taken in with one turn."""
        # The first wants most of the fleet: it is the head for which capacity is kept. Only the first, as a coordinator
        # that keeps too many executions takes no more, and what would be measured then is a refusal.
        self.take(
            self.submitted(max(GANG, len(self.nodes) // 2), GPUS, projects[0]),
            *(
                self.submitted(1 + number % COUNTS, 1 + number // COUNTS % GPUS, projects[number % len(projects)])
                for number in range(jobs - 1)
            ),
        )
        self._expect(jobs)

    def _expect(self, jobs: int) -> None:
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


def _connected(node: NodeId, number: int, having: Inventory) -> NodeConnected:
    return NodeConnected(
        node=node,
        session=number + 1,
        identity=node,
        version="bench",
        address=f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}",
        inventory=having,
    )


def busy(nodes: int, queued: int) -> Fleet:
    """A full fleet and a queue."""
    return queued_up(Fleet(nodes), queued)


def queued_up(it: Fleet, queued: int) -> Fleet:
    """The fleet with a queue, its objects out of the garbage collector's sight, as in a process that is warm."""
    it.queue(queued)
    gc.collect()
    gc.freeze()
    return it


def ends_and_next(it: Fleet) -> Callable[[], None]:
    """The members of a gang end in one turn; what came free goes to the next."""
    ending = iter(range(1, len(it.nodes) // GANG))

    def end() -> None:
        attempt_id = AttemptId(JobId(f"j{next(ending)}"), 1)
        it.take(*(reported(member, Stage.EXITED) for member in it.cluster.gangs.members(attempt_id)))

    return end


def timed_at_pace(repeats: int, action: Callable[[], object], warm: int = 2) -> tuple[list[float], float]:
    """Milliseconds of each, and the pace: virtual machines become faster and slower within seconds."""
    before = counting()
    found = timed(repeats, action, warm)
    return found, (before + counting()) / 2


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
