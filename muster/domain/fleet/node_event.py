"""Events of nodes: what happened to a node, told to people in the words of the events of jobs."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from muster.domain.ids import NodeId


class NodeEventKind(StrEnum):
    """What can happen to a node; its CloudEvents type is `muster.node.` and this word."""

    JOINED = "joined"  #: its agent connected for the first time
    UNREACHABLE = "unreachable"  #: its stream ended, or it was silent past its lease
    BACK = "back"  #: it was unreachable or lost, and is connected again
    LOST = "lost"  #: it was silent for so long that what it ran counts as lost
    CORDONED = "cordoned"  #: an operator wants nothing new placed on it
    UNCORDONED = "uncordoned"  #: it takes jobs again
    REMOVED = "removed"  #: an operator has given it up


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEvent:
    """Something happened to a node."""

    node: NodeId
    kind: NodeEventKind
    at: datetime
    """The time by the coordinator's clock."""
    text: str = ""
    """Why, where there is more to say than the kind does."""

    @property
    def id(self) -> str:
        """The same for whoever tells this event, however often."""
        return f"node/{self.node}/{self.kind}/{int(self.at.timestamp() * 1000)}"
