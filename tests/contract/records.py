"""Records to store, as short as a sentence."""

from datetime import UTC, datetime, timedelta

from coordinator.core.bar_note import BarNote
from coordinator.core.checkpoint_part import CheckpointPart
from coordinator.core.quota_meter import QuotaMeter
from coordinator.core.records import (
    Attempt,
    ClaimedSeat,
    Execution,
    Job,
    KeepEvent,
    KeepStoryEvent,
    Node,
    Put,
    Record,
    SeatClaim,
)
from muster.domain.event import FleetEvent, FleetEventKind, JobEvent, JobEventKind, NodeEvent, NodeEventKind
from muster.domain.fleet.access import Permissions, Project
from muster.domain.fleet.node import Inventory
from muster.domain.fleet.pool import Pool
from muster.domain.fleet.window import Window
from muster.domain.ids import ExecutionId, GpuUuid, JobId, NodeId, execution_id
from muster.domain.jobs.job import InlineFile, JobSpec, Role
from muster.domain.jobs.lifecycle import PROGRESS, State
from muster.domain.jobs.placing.taint import NodeTaint, Taint
from muster.domain.jobs.placing.toleration import TaintEffect

AT = datetime(2026, 11, 21, 8, 48, 50, 123456, tzinfo=UTC)


def job(name: str = "a", *, sequence: int = 1, content: bytes = b"") -> Job:
    files = (InlineFile(path="/f", content=content),) if content else ()
    return Job(
        id=JobId(name),
        spec=JobSpec(name=f"job {name}", roles=(Role(env={"Ä": "ö"}, files=files),)),
        sequence=sequence,
        submitted_at=AT,
    )


def attempt(of: str = "a", number: int = 1) -> Attempt:
    seat = ClaimedSeat(rank=0, node=NodeId("node-1"), gpus=(GpuUuid("GPU-ü"),))
    return Attempt(
        job=JobId(of),
        number=number,
        placed_at=AT,
        claim=SeatClaim(made_at=AT, seats=(seat,)),
        barred=BarNote(kind=1, unit="a", pool="default", since=AT),
        preempted_for=JobId("z"),
    )


def execution(of: str = "a", number: int = 1, rank: int = 0, *, state: State = State.QUEUED) -> Execution:
    """One that went straight to its state, a second for each step."""
    past = PROGRESS[: PROGRESS.index(state) + 1]
    return Execution(
        id=execution_id(JobId(of), number, rank),
        job=JobId(of),
        attempt=number,
        rank=rank,
        state=state,
        times={state: AT + timedelta(seconds=second) for second, state in enumerate(past)},
        node=NodeId("node-1"),
    )


def part(of: str = "a", *, name: str = "step-100", rank: int = 0) -> CheckpointPart:
    tree = "ab" * 32
    return CheckpointPart(
        job=JobId(of), attempt=1, name=name, rank=rank, number=1, tree=tree, size=90, files=2, bytes=7, at=AT
    )


def node(name: str = "node-1", address: str = "10.0.0.1") -> Node:
    return Node(
        name=NodeId(name),
        identity=f"identity of {name}",
        address=address,
        inventory=Inventory(cpus=8, memory=2**34, labels={"zone": "süd"}),
        agent_version="0.1",
        joined_at=AT,
        taints=(NodeTaint(taint=Taint(key="gpu", value="schlecht ü", effect=TaintEffect.NO_EXECUTE), since=AT),),
    )


def project(name: str = "vision", *, any_user: bool = False) -> Project:
    return Project(
        name=name, created_at=AT, permissions=Permissions(capabilities=frozenset({"SYS_PTRACE"}), any_user=any_user)
    )


def gang(name: str = "a", *, sequence: int = 1, size: int = 2) -> list[Put]:
    """A job with its first attempt and its executions."""
    return puts(job(name, sequence=sequence), attempt(name), *(execution(name, rank=rank) for rank in range(size)))


def puts(*records: Record) -> list[Put]:
    return [Put(record=record) for record in records]


def events(of: str, *kinds: JobEventKind) -> list[KeepEvent]:
    """Events of the first attempt of a job."""
    return [
        KeepEvent(event=JobEvent(job=JobId(of), attempt=1, kind=kind, at=AT, text="text", by="ä", cause="call 1"))
        for kind in kinds
    ]


def node_events(of: str, count: int, *, first: int = 0) -> list[KeepStoryEvent]:
    """Events of a node, a second apart."""
    kinds = (NodeEventKind.CORDONED, NodeEventKind.UNCORDONED)
    return [
        KeepStoryEvent(
            event=NodeEvent(
                node=NodeId(of),
                kind=kinds[place % 2],
                at=AT + timedelta(seconds=place),
                text=f"text {place}",
                by="ä",
                cause="call 1",
            )
        )
        for place in range(first, first + count)
    ]


def window(name: str = "disks", *, reason: str = "") -> Window:
    return Window(name=name, begins=AT, ends=AT + timedelta(hours=1), nodes=(NodeId("a"),), reason=reason)


def pool(name: str = "h100", **selector: str) -> Pool:
    return Pool(name=name, selector=selector, longest_run=timedelta(days=3))


def meter(project: str, pool: str = "h100", *, millionths: int = 250_000) -> QuotaMeter:
    return QuotaMeter(
        project=project, pool=pool, since=AT, millionths=millionths, borrowed=timedelta(microseconds=10**12 + 1)
    )


def fleet_event(project: str = "") -> KeepStoryEvent:
    """An event of the fleet."""
    event = FleetEvent(kind=FleetEventKind.PROJECT_ADDED, at=AT, project=project, text="ü", by="ä", cause="call 2")
    return KeepStoryEvent(event=event)


def ids(*numbers: tuple[str, int, int]) -> list[ExecutionId]:
    return [execution_id(JobId(of), number, rank) for of, number, rank in numbers]
