"""Things that a feed tells, and a feed that tells of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from muster.domain.feed import FeedBatch, FeedKey, FeedPart, FeedPlace
from muster.domain.fleet.access import Project
from muster.domain.fleet.node import NodeState, NodeView
from muster.domain.fleet.quota import Amounts
from muster.domain.fleet.standing_view import QueueLine
from muster.domain.ids import JobId, NodeId
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.view import JobView
from tests.builders import inventory

NOW = datetime(2026, 11, 27, 9, tzinfo=UTC)


def a_job(
    id_: str,
    sequence: int = 1,
    project: str = "red",
    *,
    phase: JobPhase = JobPhase.QUEUED,
    priority: int = 0,
    labels: Mapping[str, str] | None = None,
) -> JobView:
    spec = JobSpec(
        name=f"name-{id_}",
        roles=(Role(command=("true",)),),
        project=project,
        priority=priority,
        labels=labels or {},
    )
    return JobView(
        id=JobId(id_),
        spec=spec,
        phase=phase,
        summary="waits",
        submitted_at=NOW + timedelta(seconds=sequence),
        owner="ada",
        sequence=sequence,
    )


def a_node(name: str, state: NodeState = NodeState.READY) -> NodeView:
    return NodeView(name=NodeId(name), state=state, address="10.0.0.1", inventory=inventory(name, 2), pool="fast")


def a_project(name: str) -> Project:
    return Project(name=name, created_at=NOW)


def a_line(job: str, project: str = "red", position: int = 1) -> QueueLine:
    return QueueLine(
        position=position,
        job=JobId(job),
        name=f"name-{job}",
        project=project,
        owner="ada",
        pool="fast",
        job_class=JobClass.GUARANTEED,
        priority=7,
        tier="quota",
        size=Amounts(1000, 1000, 1),
        since=NOW,
        reason="room",
    )


@dataclass
class ToldFeed:
    """A coordinator's feed as batches, with its own count."""

    instance: str = "life-rights"
    revision: int = 0
    complete_from: int = 0
    told: list[FeedBatch] = field(default_factory=list)

    def tell(
        self,
        *things: JobView | NodeView | Project,
        gone: Sequence[FeedKey] = (),
        queue: Sequence[QueueLine] | None = None,
        anew: bool = False,
        caught_up: bool = True,
    ) -> FeedBatch:
        """The next batch."""
        self.revision += 1
        batch = FeedBatch(
            place=FeedPlace(instance=self.instance, revision=self.revision),
            anew=anew,
            caught_up=caught_up,
            complete_from=self.complete_from,
            jobs=[each for each in things if isinstance(each, JobView)],
            nodes=[each for each in things if isinstance(each, NodeView)],
            projects=[each for each in things if isinstance(each, Project)],
            gone=gone,
            queue=queue,
        )
        self.told.append(batch)
        return batch


def job_key(id_: str) -> FeedKey:
    return FeedKey(FeedPart.JOBS, id_)
