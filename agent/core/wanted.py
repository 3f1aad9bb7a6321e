"""What the coordinator wants: a plan changes what is wanted of each execution, and each goes on from there."""

from dataclasses import replace
from datetime import datetime

from agent.core.actions import LedgerAction
from agent.core.events import PlanReceived
from agent.core.ledger import Ledger
from agent.core.local import LocalEnd, LocalExecution, Move, WantedExecution, only_to_store, terms_of
from muster.domain.gangs.plan import Desired, Goal, Plan, Unreadable
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import Failure, FailureKind


def take_plan(ledger: Ledger, event: PlanReceived, now: datetime) -> list[LedgerAction]:
    """Apply a plan that is whole or builds on the last one; any other is dropped, heartbeats bring a whole one.

    A plan that is older than the last is dropped, too: it would have what was ordered since cleared away.
    """
    plan, known = event.plan, ledger.applied(event.stream)
    if plan.base not in {0, known} or plan.revision <= known:
        return []
    ledger.note_plan(plan, event.stream)
    return _apply(ledger, plan, now)


def _apply(ledger: Ledger, plan: Plan, now: datetime) -> list[LedgerAction]:
    gone = list(plan.removed)
    if plan.base == 0:
        listed = {desired.execution for desired in plan.desired} | {line.execution for line in plan.unreadable}
        gone = [execution for execution in ledger.executions() if execution not in listed]
    changed = [_want(ledger, desired, now) for desired in plan.desired]
    for execution in gone:
        local = ledger.get(execution)
        if local is not None:
            ledger.put(replace(local, wanted=replace(local.wanted, listed=False)))
            changed.append(execution)
    ledger.forget_rosters()
    refused = [action for line in plan.unreadable for action in _refuse(ledger, line, now)]
    return [*refused, *(action for execution in changed for action in ledger.go_on(execution, now))]


def _refuse(ledger: Ledger, line: Unreadable, now: datetime) -> list[LedgerAction]:
    """Report what could not be read as a failure of its execution; of one that is known here the goal counts."""
    local = ledger.get(line.execution)
    if local is not None:
        wanted = replace(local.wanted, goal=max(local.wanted.goal, line.goal), listed=True)
        ledger.put(replace(local, wanted=wanted))
        return ledger.go_on(line.execution, now)
    failure = Failure(kind=FailureKind.RUNTIME, message=f"its agent cannot read what it is told: {line.reason}")
    local = LocalExecution(execution=line.execution, wanted=WantedExecution(goal=Goal.PREPARE), since=now)
    return ledger.move(local, Move.FAILED, now, end=LocalEnd(failure=failure))


def _want(ledger: Ledger, desired: Desired, now: datetime) -> ExecutionId:
    local = ledger.get(desired.execution)
    anew = local is None and desired.store_again > 0
    if local is None:
        local = LocalExecution(execution=desired.execution, wanted=WantedExecution(goal=desired.goal), since=now)
    wanted = local.wanted
    assignment, roster = desired.assignment or wanted.assignment, wanted.roster
    if assignment is not None:
        roster = ledger.roster(assignment.attempt_id) or roster
    cause = desired.cause or wanted.cause
    wanted = WantedExecution(
        goal=max(wanted.goal, desired.goal),
        assignment=assignment,
        roster=roster,
        stop=desired.stop or wanted.stop,
        cause=cause,
        store_again=max(wanted.store_again, desired.store_again),
    )
    if anew:
        ledger.put(only_to_store(desired.execution, wanted, now))
        return desired.execution
    terms = local.terms if desired.assignment is None else terms_of(desired.assignment)
    ledger.put(replace(local, wanted=wanted, terms=terms))
    return desired.execution
