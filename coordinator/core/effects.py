"""What is to be done once a step is durable."""

from dataclasses import dataclass

from muster.domain.event import StorySubject
from muster.domain.gangs.plan import Plan
from muster.domain.ids import JobId, NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class SendPlan:
    """Tell a node what it shall run."""

    node: NodeId
    session: int
    """The stream on which it goes; if that is gone, the next one begins with the whole plan anyway."""
    plan: Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnounceJob:
    """Wake up who watches this job."""

    job: JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnounceStory:
    """Wake up who follows the story of a node or of the fleet."""

    subject: StorySubject


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetLogs:
    """Remove the logs of a deleted job."""

    job: JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseSession:
    """End a stream of a node, because it is silent or there is a newer one; an agent that is alive comes back."""

    node: NodeId
    session: int


Effect = CloseSession | SendPlan | AnnounceJob | AnnounceStory | ForgetLogs
