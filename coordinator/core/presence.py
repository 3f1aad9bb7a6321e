"""What the coordinator believes of each node right now."""

from dataclasses import dataclass, field
from datetime import datetime

from muster.domain.ids import ExecutionId
from muster.domain.node import NodeState


@dataclass(slots=True)
class Presence:
    """Of one node; not stored."""

    last_seen_at: datetime
    """After a start of the coordinator: the time of the start."""
    seen: bool = False
    """Whether it spoke since the coordinator started."""
    session: int | None = None
    """The open stream; None: there is none."""
    opened: int = 0
    """When its agent opened that stream, or the last one, by the agent's own count."""
    in_contact_since: datetime | None = None
    """Since when it has been silent for no lease; None: never since the coordinator started."""
    lost: bool = False
    plan_revision: int = 0
    """Of the newest plan made for it."""
    plan_at_heartbeat: int = 0
    """That revision when it last sent a heartbeat: by the next one it must have applied it."""
    dismissed: dict[ExecutionId, None] = field(default_factory=dict)
    """Executions that it may clear away, and was not told so yet."""
    ghosts: set[ExecutionId] = field(default_factory=set)
    """Executions that it still runs although nobody wants them; nothing is placed there until they are gone."""

    @property
    def state(self) -> NodeState:
        """READY only while its stream is open."""
        if self.lost:
            return NodeState.LOST
        return NodeState.READY if self.session is not None else NodeState.UNREACHABLE
