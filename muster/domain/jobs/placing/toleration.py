"""Which taints of nodes a job puts up with."""

from dataclasses import dataclass
from enum import StrEnum


class TaintEffect(StrEnum):
    """What a taint of a node does to jobs that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"  #: they are not placed there; what runs there goes on
    PREFER_NO_SCHEDULE = "PreferNoSchedule"  #: they are placed there only where other nodes have no room
    NO_EXECUTE = "NoExecute"  #: they are not placed there, and what runs there begins anew elsewhere


class TolerationOperator(StrEnum):
    """How the value of a toleration is compared with that of a taint."""

    EQUAL = "Equal"  #: both are the same
    EXISTS = "Exists"  #: the taint may have any value


@dataclass(frozen=True, slots=True, kw_only=True)
class Toleration:
    """Taints that a job puts up with."""

    key: str = ""
    """Key of the taints; empty: any."""
    operator: TolerationOperator = TolerationOperator.EQUAL
    value: str = ""
    effect: TaintEffect | None = None
    """Effect of the taints; None: any."""
    seconds: int | None = None
    """Time for which a job stays that runs there already when the taint comes; None: for ever."""
