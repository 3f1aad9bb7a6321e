"""What the one who caused an event is told, once the step is durable."""

from dataclasses import dataclass
from enum import Enum, auto

from coordinator.core.records import Job
from muster.domain.view import NodeRefusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The job as it stands after the event."""

    job: Job


class RefusalCause(Enum):
    """What kind of no it is."""

    UNKNOWN = auto()  #: there is no such job or node
    CONFLICT = auto()  #: it does not fit the present state
    IMPOSSIBLE = auto()  #: no node could ever do it
    EXHAUSTED = auto()  #: there is too much already


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Nothing was changed, and why."""

    cause: RefusalCause
    message: str
    refusals: tuple[NodeRefusal, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """There is nothing to say."""


Answer = Accepted | Refused | Noted
