"""What the agent shall do: orders to its runtimes, reports to the coordinator, and what keeps its fence."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from muster.domain.gangs.fence import PeerWord, Witness
from muster.domain.gangs.plan import Assignment, Report
from muster.domain.gangs.roster import Roster
from muster.domain.ids import AttemptId, ExecutionId
from muster.domain.jobs.stopping.notice import StopNotice
from muster.domain.jobs.stopping.preemption import PreemptSignal


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
    """Time between the signal and SIGKILL; of a fenced one by the clock of fencing."""
    signal: PreemptSignal | None = PreemptSignal.TERM
    """What user code gets first; None: it has got it."""
    notice: StopNotice | None = None
    """What user code reads meanwhile; None: none of it runs."""
    fenced: str = ""
    """Why the agent stops it by itself, which its directory is to tell before it is stopped; empty: it was told to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove:
    """Clear everything of it away."""

    execution: ExecutionId


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreAgain:
    """Store again what an execution that is over has left, and say OutputsSeen with this number."""

    execution: ExecutionId
    retries: int
    owner_counts: bool
    """Whether its files are those alone that belong to its user, as it was a plain process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tell:
    """Report to the coordinator, if it can be reached; otherwise the next Hello does."""

    report: Report


@dataclass(frozen=True, slots=True, kw_only=True)
class AskPeers:
    """Ask the witnesses of an attempt, and say PeersAnswered before the next round begins."""

    attempt: AttemptId
    asked_at: float
    witnesses: tuple[Witness, ...]
    key: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class LeavePeers:
    """Let go of the connections to peers: there is nothing to ask them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPeer:
    """Give a peer this word now: it may be a permit, and is remembered as one."""

    word: PeerWord


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteDeadlines:
    """Have these deadlines known to whoever kills if this agent cannot, in place of those of before."""

    deadlines: Mapping[ExecutionId, float]


FenceAction = AskPeers | LeavePeers | AnswerPeer | NoteDeadlines
"""Orders that keep the fence."""

LedgerAction = Prepare | Arm | Start | Halt | Remove | StoreAgain | Tell
"""Orders that concern an execution."""

Action = LedgerAction | FenceAction
