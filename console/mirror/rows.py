"""Rows of the mirror: what lists are filtered and sorted by, and the JSON that all who see a row are sent."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from muster.documents import document
from muster.domain.feed import FeedKey, FeedPart
from muster.domain.fleet.access import Project
from muster.domain.fleet.node import NodeView
from muster.domain.fleet.quota import amounts_of_job
from muster.domain.fleet.standing_view import QueueLine
from muster.domain.jobs.lifecycle import State
from muster.domain.jobs.view import JobView

Scalar = str | float | bool | datetime | None
LABEL_FIELD = "label."
"""How fields begin that are labels."""


class EncodedJson(bytes):
    """JSON, as it is sent."""


@dataclass(frozen=True, slots=True)
class MirrorRow:
    """One thing."""

    key: FeedKey
    scope: str
    """The project whose viewers see it; empty: whoever sees any."""
    place: int
    """The place in a list that nobody has sorted: the least comes first."""
    fields: Mapping[str, Scalar]
    """What conditions, orders and alerts are about; a label is under `label.KEY`."""
    data: EncodedJson
    brief: EncodedJson | None = None
    """What a list shows of a job; None: it is no job."""


@dataclass(frozen=True, slots=True)
class MirrorLine:
    """A line of the queue, for who may look at its job and for others."""

    project: str
    pool: str
    since: datetime
    """When the job was queued."""
    named: EncodedJson
    unnamed: EncodedJson


def encoded(value: object) -> EncodedJson:
    """A value as JSON."""
    if isinstance(value, EncodedJson):
        return value
    return EncodedJson(json.dumps(document(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode())


def joined(items: Sequence[bytes]) -> EncodedJson:
    """Values as one list."""
    return EncodedJson(b"[" + b",".join(items) + b"]")


def job_row(job: JobView) -> MirrorRow:
    """The row of a job."""
    spec = job.spec
    fields: dict[str, Scalar] = {
        "id": job.id,
        "name": spec.name,
        "project": spec.project,
        "owner": job.owner,
        "phase": str(job.phase),
        "priority": float(spec.priority),
        "executions": float(spec.size),
        "gpus": amounts_of_job(spec).gpus / 1000,
        "attempt": float(job.attempts[-1].number) if job.attempts else 0.0,
        "submitted_at": job.submitted_at,
        "started_at": job.started_at,
        "ended_at": job.ended_at,
        "summary": job.summary,
    }
    brief = encoded(
        {**fields, "labels": spec.labels, "sequence": job.sequence, "running": job.states.get(State.RUNNING, 0)}
    )
    fields |= {LABEL_FIELD + name: value for name, value in spec.labels.items()}
    return MirrorRow(FeedKey(FeedPart.JOBS, job.id), spec.project, -job.sequence, fields, encoded(job), brief)


def node_row(node: NodeView) -> MirrorRow:
    """The row of a node."""
    inventory = node.inventory
    fields: dict[str, Scalar] = {
        "name": node.name,
        "state": str(node.state),
        "pool": node.pool,
        "address": node.address,
        "cordoned": node.cordon is not None,
        "gpus": float(len(inventory.gpus)),
        "gpus_free": float(
            sum(
                gpu.usable and gpu.uuid not in node.gpus_taken and gpu.uuid not in node.gpus_shared
                for gpu in inventory.gpus
            )
        ),
        "gpus_broken": float(sum(not gpu.usable for gpu in inventory.gpus)),
        "model": inventory.gpus[0].model if inventory.gpus else "",
        "executions": float(len(node.executions)),
        "agent_version": node.agent_version,
        "joined_at": node.joined_at,
        "last_seen_at": node.last_seen_at,
    }
    fields |= {LABEL_FIELD + name: value for name, value in inventory.labels.items()}
    return MirrorRow(FeedKey(FeedPart.NODES, node.name), "", 0, fields, encoded(node))


def project_row(project: Project) -> MirrorRow:
    """The row of a project."""
    fields: dict[str, Scalar] = {"name": project.name, "department": project.department}
    return MirrorRow(FeedKey(FeedPart.PROJECTS, project.name), project.name, 0, fields, encoded(project))


def queue_line(line: QueueLine) -> MirrorLine:
    """A line of the queue."""
    return MirrorLine(line.project, line.pool, line.since, encoded(line), encoded(line.unnamed))


JOB_FIELDS = frozenset(
    {
        "id",
        "name",
        "project",
        "owner",
        "phase",
        "priority",
        "executions",
        "gpus",
        "attempt",
        "submitted_at",
        "started_at",
        "ended_at",
        "summary",
    }
)
"""Fields of jobs, beside their labels."""
NODE_FIELDS = frozenset(
    {
        "name",
        "state",
        "pool",
        "address",
        "cordoned",
        "gpus",
        "gpus_free",
        "gpus_broken",
        "model",
        "executions",
        "agent_version",
        "joined_at",
    }
)
"""Fields of nodes, beside their labels."""
