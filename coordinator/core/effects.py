"""What is to be done once a step is durable."""

from dataclasses import dataclass

from muster.domain.ids import JobId, NodeId
from muster.domain.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class SendPlan:
    """Tell a node what it shall run."""

    node: NodeId
    plan: Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnounceJob:
    """Wake up who watches this job."""

    job: JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetLogs:
    """Remove the logs of a deleted job."""

    job: JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseSession:
    """End the stream of a node that has gone silent; an agent that is alive comes back with a new one."""

    node: NodeId


Effect = CloseSession | SendPlan | AnnounceJob | ForgetLogs
