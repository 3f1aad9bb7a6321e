"""What is asked of the simulated coordinator, who checks what it does, and its end of an agent's stream."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from coordinator.core.answers import Answer
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.events import Event
from coordinator.core.records import Change
from muster.domain.gangs.plan import Plan
from muster.domain.ids import NodeId
from tests.simulation.network import Stream

Reply = Callable[[Answer], None]
Question = Callable[[Cluster], None]


@dataclass(frozen=True, slots=True)
class Asked:
    """An event, or a question about what comes of those before it, and who waits for the answer."""

    events: tuple[Event, ...]
    reply: Reply | None = None
    question: Question | None = None

    @property
    def waited_for(self) -> bool:
        return self.reply is not None or self.question is not None


class Observer(Protocol):
    """A check of what the coordinator does."""

    def stepped(self, cluster: Cluster, changes: tuple[Change, ...]) -> None: ...

    def committed(self, changes: tuple[Change, ...]) -> None: ...

    def loaded(self, cluster: Cluster) -> None: ...


@dataclass(slots=True, kw_only=True)
class Session:
    """The coordinator's end of an agent's stream."""

    number: int
    node: NodeId
    stream: Stream
    welcomed: bool = False
    ended: bool = False
    early: list[object] = field(default_factory=list)
    """What the agent sent before it was welcomed."""
    plans: list[Plan] = field(default_factory=list)
    """What waits until it is."""
