"""What the agent shall do: orders to its runtimes and reports to the coordinator."""

from dataclasses import dataclass
from datetime import timedelta

from muster.domain.gangs.plan import Assignment, Report
from muster.domain.gangs.roster import Roster
from muster.domain.ids import ExecutionId


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepare:
    """Get everything ready that does not depend on the other members."""

    assignment: Assignment


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """Write the roster files and bring it to the point where only the start is missing."""

    assignment: Assignment
    roster: Roster


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Start user code."""

    execution: ExecutionId


@dataclass(frozen=True, slots=True, kw_only=True)
class Halt:
    """Stop what runs of it; interrupts a preparation."""

    execution: ExecutionId
    grace: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove:
    """Clear everything of it away."""

    execution: ExecutionId


@dataclass(frozen=True, slots=True, kw_only=True)
class Tell:
    """Report to the coordinator, if it can be reached; otherwise the next Hello does."""

    report: Report


Action = Prepare | Arm | Start | Halt | Remove | Tell
