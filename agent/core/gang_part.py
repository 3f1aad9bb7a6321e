"""The part of a gang that runs on this node, as commands between its members need to know it."""

from agent.core.door.gang_rules import GangPart
from agent.core.ledger import Ledger
from agent.core.local import LocalExecution, LocalState
from muster.domain.gangs.plan import Goal
from muster.domain.ids import AttemptId, ExecutionId

_BEFORE = frozenset({LocalState.NEW, LocalState.PREPARING, LocalState.PREPARED, LocalState.ARMING, LocalState.ARMED})
_RUNS = frozenset({LocalState.ARMED, LocalState.STARTING, LocalState.RUNNING})


def gang_part(ledger: Ledger, attempt: AttemptId) -> GangPart | None:
    """The part of an attempt that this node has; None: nothing of it is here."""
    part = [local for local in map(ledger.get, ledger.executions()) if local is not None and _is_of(local, attempt)]
    if not part:
        return None
    running: dict[int, ExecutionId] = {}
    ahead: set[int] = set()
    for local in part:
        assignment = local.wanted.assignment
        if assignment is None or local.over:
            continue
        if local.wanted.goal is Goal.RUN and local.phase in _RUNS:
            running[assignment.rank] = local.execution
        elif local.phase in _BEFORE:
            ahead.add(assignment.rank)
    terms = part[0].terms
    assert terms is not None, "it is of the attempt"
    return GangPart(
        attempt=attempt,
        secret=terms.fence.key,
        roster=ledger.roster(attempt),
        running=running,
        ahead=frozenset(ahead),
    )


def own_place(ledger: Ledger, execution: ExecutionId) -> tuple[GangPart, int] | None:
    """The gang of an execution here, and its rank in it; None: the agent does not know it, or not yet."""
    local = ledger.get(execution)
    if local is None or local.wanted.assignment is None or local.terms is None:
        return None
    part = gang_part(ledger, local.terms.attempt_id)
    return None if part is None else (part, local.wanted.assignment.rank)


def _is_of(local: LocalExecution, attempt: AttemptId) -> bool:
    return local.terms is not None and local.terms.attempt_id == attempt
