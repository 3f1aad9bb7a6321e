"""All executions of a node: what the coordinator wants and what is observed, brought together event by event."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any, assert_never

from agent.core.actions import Action, Halt, Tell
from agent.core.events import (
    ActionFailed,
    Armed,
    Event,
    Exited,
    Fenced,
    GpuFaulted,
    Halted,
    LogCompleted,
    PlanReceived,
    Prepared,
    Progressed,
    Recovered,
    Removed,
    Started,
)
from agent.core.gpu_faults import GpuFaults
from agent.core.local import ALIVE, OVER, LocalExecution, LocalState, Move, after, next_action, report, terms_of
from agent.core.past import Past
from agent.core.terms import AttemptKey, Guarded, Terms
from muster.domain.gangs.plan import Desired, Goal, Plan, Report, Unreadable
from muster.domain.gangs.roster import Roster
from muster.domain.ids import ExecutionId, GpuUuid
from muster.domain.jobs.failure import Exit, Failure, FailureKind

Observed = Progressed | Prepared | Armed | Started | ActionFailed | Exited | Halted | Fenced | LogCompleted | Removed
"""Events about an execution that the ledger knows."""

COMMAND_NOT_FOUND = 127
"""Exit code of a shell that did not find the command."""


class Ledger:
    """The state of the agent's core; the only mutable object in it."""

    def __init__(self) -> None:
        self.revision = 0
        """Of the last plan that was applied."""
        self._stream = 0
        """On which that plan came."""
        self._locals: dict[ExecutionId, LocalExecution] = {}
        self._rosters: dict[AttemptKey, Roster] = {}
        self._past = Past()
        self._gpu_faults = GpuFaults()

    def step(self, event: Event, now: datetime) -> list[Action]:
        """Take one event in; what is to be done because of it, in order."""
        if isinstance(event, PlanReceived):
            return self._take(event, now)
        if isinstance(event, Recovered):
            return self._recover(event, now)
        if isinstance(event, GpuFaulted):
            self._gpu_faults.note(event, now)
            return []
        local = self._locals.get(event.execution)
        if local is None or (local.phase in OVER and not isinstance(event, LogCompleted | Removed)):
            return []
        return self._observe(local, event, now)

    def reports(self) -> tuple[Report, ...]:
        """The whole truth about every execution, for Hello."""
        told = (report(local) for local in self._locals.values())
        return tuple(each for each in told if each is not None)

    def assigned(self) -> frozenset[GpuUuid]:
        """GPUs that belong to an execution here."""
        return frozenset(
            gpu for local in self._locals.values() if local.assignment is not None for gpu in local.assignment.gpus
        )

    def gpus(self, execution: ExecutionId) -> tuple[GpuUuid, ...]:
        """GPUs that belong to one, as far as its assignment is known here."""
        local = self._locals.get(execution)
        return () if local is None or local.assignment is None else local.assignment.gpus

    def live(self) -> Iterator[ExecutionId]:
        """Executions of which something may run."""
        return (local.execution for local in self._locals.values() if local.phase not in OVER)

    def guarded(self) -> tuple[Guarded, ...]:
        """Executions whose user code runs, or may run at any moment, with the terms on which it may."""
        return tuple(
            Guarded(execution=local.execution, terms=local.terms)
            for local in self._locals.values()
            if local.phase in ALIVE and local.terms is not None and not local.ended_before
        )

    def terms(self, execution: ExecutionId) -> Terms | None:
        """On which terms an execution runs; None where that is not known."""
        local = self._locals.get(execution)
        return None if local is None else local.terms

    def attempt(self, key: AttemptKey) -> Terms | None:
        """The terms of an attempt of which something is here, or was and ended well; None: not known here."""
        found = (local.terms for local in self._part(key))
        return next(found, None) or self._past.well(key)

    def takes_part(self, key: AttemptKey) -> bool:
        """Whether this node's part of an attempt goes on or ended well; False also for what is not known here."""
        part = self._part(key)
        if any(local.over for local in part) or self._past.spoilt(key):
            return False
        return bool(part) or self._past.well(key) is not None

    def _part(self, key: AttemptKey) -> list[LocalExecution]:
        return [local for local in self._locals.values() if local.terms is not None and local.terms.key == key]

    # what the coordinator wants

    def applied(self, stream: int) -> int:
        """Of the plans that came on a stream, the revision of the last that was applied; 0: none was."""
        return self.revision if stream == self._stream else 0

    def _take(self, event: PlanReceived, now: datetime) -> list[Action]:
        """Apply a plan that is whole or builds on the last one; any other is dropped, heartbeats bring a whole one.

        So is one that is older than the last: it would have what was ordered since cleared away.
        """
        plan, known = event.plan, self.applied(event.stream)
        if plan.base not in {0, known} or plan.revision <= known:
            return []
        self._stream = event.stream
        return self._apply(plan, now)

    def _apply(self, plan: Plan, now: datetime) -> list[Action]:
        self.revision = plan.revision
        self._rosters.update({(roster.job, roster.attempt): roster for roster in plan.rosters})
        gone = list(plan.removed)
        if plan.base == 0:
            listed = {desired.execution for desired in plan.desired} | {line.execution for line in plan.unreadable}
            gone = [execution for execution in self._locals if execution not in listed]
        changed = [self._want(desired, now) for desired in plan.desired]
        for execution in gone:
            if execution in self._locals:
                self._locals[execution] = replace(self._locals[execution], wanted=False)
                changed.append(execution)
        self._forget_rosters()
        refused = [action for line in plan.unreadable for action in self._refuse(line, now)]
        return [*refused, *(action for execution in changed for action in self._go_on(execution, now))]

    def _refuse(self, line: Unreadable, now: datetime) -> list[Action]:
        """Report what could not be read as a failure of its execution; of one that is known here the goal counts."""
        local = self._locals.get(line.execution)
        if local is not None:
            self._locals[line.execution] = replace(local, goal=max(local.goal, line.goal), wanted=True)
            return self._go_on(line.execution, now)
        failure = Failure(kind=FailureKind.RUNTIME, message=f"its agent cannot read what it is told: {line.reason}")
        local = LocalExecution(execution=line.execution, goal=Goal.PREPARE, since=now)
        return self._move(local, Move.FAILED, now, failure=failure)

    def _want(self, desired: Desired, now: datetime) -> ExecutionId:
        local = self._locals.get(desired.execution)
        if local is None:
            local = LocalExecution(execution=desired.execution, goal=desired.goal, since=now)
        assignment = desired.assignment or local.assignment
        roster = local.roster
        if assignment is not None:
            roster = self._rosters.get((assignment.job, assignment.attempt), roster)
        self._locals[desired.execution] = replace(
            local,
            goal=max(local.goal, desired.goal),
            assignment=assignment,
            roster=roster,
            terms=local.terms if desired.assignment is None else terms_of(desired.assignment),
            wanted=True,
        )
        return desired.execution

    def _forget_rosters(self) -> None:
        needed = {
            (local.assignment.job, local.assignment.attempt)
            for local in self._locals.values()
            if local.assignment is not None
        }
        self._rosters = {key: roster for key, roster in self._rosters.items() if key in needed}

    # what is observed

    def _recover(self, event: Recovered, now: datetime) -> list[Action]:
        phase = LocalState.RUNNING if event.started else LocalState.STOPPED
        self._locals[event.execution] = LocalExecution(
            execution=event.execution,
            goal=Goal.RUN,
            since=now,
            phase=phase,
            address=event.address,
            ports=event.ports,
            started_at=(event.started_at or now) if event.started else None,
            terms=event.terms,
            fenced=event.fenced,
            ended_before=event.ended,
        )
        return []

    def _observe(self, local: LocalExecution, event: Observed, now: datetime) -> list[Action]:  # noqa: C901, PLR0911 - one each
        match event:
            case Progressed():
                return self._describe(local, event)
            case Prepared():
                return self._prepared(local, event, now)
            case Armed():
                return self._move(local, Move.ARMED, now)
            case Started():
                return self._move(local, Move.STARTED, now, started_at=now)
            case ActionFailed():
                return self._fail(local, event, now)
            case Exited():
                return self._exited(local, event, now)
            case Halted():
                return self._move(local, Move.HALTED, now) if local.phase is LocalState.HALTING else []
            case Fenced():
                return self._fence(local, event, now)
            case LogCompleted():
                return self._keep(replace(local, log_complete=True))
            case Removed():
                return self._forget(local)
            case _:
                assert_never(event)

    def _exited(self, local: LocalExecution, event: Exited, now: datetime) -> list[Action]:
        """An end that the agent itself brought about is nobody's success, whatever the exit code."""
        failure = exit_failure(event.exit, event.log_tail)
        if failure is not None and local.assignment is not None:
            failure = self._gpu_faults.blamed(failure, local.assignment.gpus, local.started_at, now)
        if local.fenced:
            failure = _fence_failure(local, event.exit, event.log_tail)
        well = failure is None and local.phase is LocalState.RUNNING and not local.over
        move = Move.FAILED if event.exit.code == 0 and failure is not None else Move.EXITED
        return self._move(local, move, now, exit=event.exit, failure=failure, ended_well=well)

    def _fence(self, local: LocalExecution, event: Fenced, now: datetime) -> list[Action]:
        """Stop it by the deadline, also if it is being stopped more patiently; a start under way is finished first."""
        if local.phase not in ALIVE or local.ended_before:
            return []
        fenced = replace(local, fenced=event.message, fence_grace=event.grace)
        self._locals[local.execution] = fenced
        if local.phase is LocalState.TERMINATING:
            return [Halt(execution=local.execution, grace=event.grace)]
        return self._go_on(local.execution, now)

    def _forget(self, local: LocalExecution) -> list[Action]:
        del self._locals[local.execution]
        if local.terms is not None:
            others = bool(self._part(local.terms.key))
            self._past.add(local.terms, well=local.ended_well, others=others)
            self._past.trim({each.terms.key for each in self._locals.values() if each.terms is not None})
        return []

    def _prepared(self, local: LocalExecution, event: Prepared, now: datetime) -> list[Action]:
        """A preparation may have ended just when it was told to stop; stopping goes on."""
        if local.phase is LocalState.HALTING:
            return []
        return self._move(local, Move.PREPARED, now, address=event.address, ports=event.ports, detail="")

    def _describe(self, local: LocalExecution, event: Progressed) -> list[Action]:
        if local.phase is not LocalState.PREPARING or local.detail == event.detail:
            return []
        return self._keep(replace(local, detail=event.detail))

    def _fail(self, local: LocalExecution, event: ActionFailed, now: datetime) -> list[Action]:
        """An action failed; while it is being stopped anyway that only means that there is nothing to stop."""
        if local.phase is LocalState.HALTING:
            return self._move(local, Move.HALTED, now)
        failure = Failure(kind=event.kind, message=event.message)
        if local.fenced:
            failure = _fence_failure(local, None, ())
        return self._move(local, Move.FAILED, now, failure=failure)

    def _move(self, local: LocalExecution, move: Move, now: datetime, **learned: Any) -> list[Action]:  # noqa: ANN401 - fields of it
        """Go to the next phase, knowing more."""
        moved = replace(local, phase=after(local, move), since=now, **learned)
        return [*self._keep(moved), *self._go_on(local.execution, now)]

    def _keep(self, local: LocalExecution) -> list[Action]:
        self._locals[local.execution] = local
        told = report(local)
        return [] if told is None else [Tell(report=told)]

    def _go_on(self, execution: ExecutionId, now: datetime) -> list[Action]:
        local = self._locals[execution]
        following = next_action(local)
        if following is None:
            return []
        move, action = following
        moved = replace(local, phase=after(local, move), since=now)
        self._locals[execution] = moved
        told = report(moved) if moved.phase is LocalState.PREPARING else None
        return [action] if told is None else [Tell(report=told), action]


def _fence_failure(local: LocalExecution, exit_: Exit | None, log_tail: tuple[str, ...]) -> Failure:
    return Failure(kind=FailureKind.NODE_LOST, message=local.fenced, exit=exit_, log_tail=log_tail)


def exit_failure(exit_: Exit, log_tail: tuple[str, ...]) -> Failure | None:
    """Why an exit is a failure; None for exit code 0."""
    if exit_.code == 0:
        return None
    if exit_.out_of_memory:
        kind, message = FailureKind.OUT_OF_MEMORY, "ran out of memory and was killed"
    elif exit_.signal is not None:
        kind, message = FailureKind.SIGNAL, f"was killed by {exit_.signal}"
    else:
        kind, message = FailureKind.EXIT_CODE, f"ended with exit code {exit_.code}"
        if exit_.code == COMMAND_NOT_FOUND:
            message += " (a shell's word for: command not found)"
    return Failure(kind=kind, message=message, exit=exit_, log_tail=log_tail)
