"""All executions of a node: what the agent knows of each, and how it goes on."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from agent.core.actions import Halt, LedgerAction, Tell
from agent.core.local import ALIVE, OVER, LocalExecution, LocalState, Move, after, next_action, report, storing_again
from agent.core.past import Past
from agent.core.terms import Guarded, Terms
from agent.core.watching.gpu_faults import GpuFaults
from muster.domain.data.outputs import STORING_OUTPUTS
from muster.domain.gangs.plan import Plan, Report
from muster.domain.gangs.roster import Roster
from muster.domain.ids import AttemptId, ExecutionId, GpuUuid


class Ledger:
    """What the node runs; only `step` has it changed."""

    def __init__(self) -> None:
        self.revision = 0
        """Number of the last plan that was applied."""
        self.gpu_faults = GpuFaults()
        self._stream = 0
        """Stream on which that plan came."""
        self._locals: dict[ExecutionId, LocalExecution] = {}
        self._rosters: dict[AttemptId, Roster] = {}
        self._past = Past()

    # what is known

    def get(self, execution: ExecutionId) -> LocalExecution | None:
        """What is known of an execution; None: nothing."""
        return self._locals.get(execution)

    def executions(self) -> tuple[ExecutionId, ...]:
        """Every execution that is known."""
        return tuple(self._locals)

    def roster(self, attempt: AttemptId) -> Roster | None:
        """The members of an attempt, if the coordinator has told them."""
        return self._rosters.get(attempt)

    def reports(self) -> tuple[Report, ...]:
        """The whole truth about every execution, for Hello."""
        told = (report(local) for local in self._locals.values())
        return tuple(each for each in told if each is not None)

    def assigned(self) -> frozenset[GpuUuid]:
        """GPUs that belong to an execution here."""
        assignments = (local.wanted.assignment for local in self._locals.values())
        return frozenset(gpu for each in assignments if each is not None for gpu in each.gpus)

    def gpus(self, execution: ExecutionId) -> tuple[GpuUuid, ...]:
        """GPUs that belong to one execution, as far as its assignment is known here."""
        local = self._locals.get(execution)
        assignment = None if local is None else local.wanted.assignment
        return () if assignment is None else assignment.gpus

    def live(self) -> Iterator[ExecutionId]:
        """Executions of which something may run."""
        return (local.execution for local in self._locals.values() if local.phase not in OVER)

    def guarded(self) -> tuple[Guarded, ...]:
        """Executions whose user code runs, or may run at any moment, with the terms on which it may."""
        return tuple(
            Guarded(execution=local.execution, terms=local.terms)
            for local in self._locals.values()
            if local.phase in ALIVE and local.terms is not None and not local.end.before
        )

    def attempt(self, attempt_id: AttemptId) -> Terms | None:
        """The terms of an attempt of which something is here, or was and ended well; None: not known here."""
        found = (local.terms for local in self._part(attempt_id))
        return next(found, None) or self._past.well(attempt_id)

    def takes_part(self, attempt_id: AttemptId) -> bool:
        """Whether this node's part of an attempt goes on or ended well; False also for what is not known here."""
        part = self._part(attempt_id)
        if any(local.over for local in part) or self._past.spoilt(attempt_id):
            return False
        return bool(part) or self._past.well(attempt_id) is not None

    def applied(self, stream: int) -> int:
        """Revision of the last applied plan among those that came on a stream; 0: none was."""
        return self.revision if stream == self._stream else 0

    # what changes

    def note_plan(self, plan: Plan, stream: int) -> None:
        """Count a plan as applied, and keep its rosters."""
        self.revision, self._stream = plan.revision, stream
        self._rosters.update({roster.attempt_id: roster for roster in plan.rosters})

    def forget_rosters(self) -> None:
        """Drop the rosters of attempts of which nothing is here any more."""
        assignments = (local.wanted.assignment for local in self._locals.values())
        needed = {each.attempt_id for each in assignments if each is not None}
        self._rosters = {attempt_id: roster for attempt_id, roster in self._rosters.items() if attempt_id in needed}

    def put(self, local: LocalExecution) -> None:
        """Know this of an execution from here on."""
        self._locals[local.execution] = local

    def keep(self, local: LocalExecution) -> list[LedgerAction]:
        """Know this of an execution, and tell the coordinator."""
        self._locals[local.execution] = local
        told = report(local)
        return [] if told is None else [Tell(report=told)]

    def move(self, local: LocalExecution, move: Move, now: datetime, **learned: Any) -> list[LedgerAction]:  # noqa: ANN401 - fields of it
        """Take an execution to its next phase, knowing more."""
        moved = replace(local, phase=after(local, move), since=now, **learned)
        return [*self.keep(moved), *self.go_on(local.execution, now)]

    def go_on(self, execution: ExecutionId, now: datetime) -> list[LedgerAction]:
        """Order what brings an execution closer to what is wanted, if there is anything to order."""
        local = self._locals[execution]
        following = next_action(local, now)
        if following is None:
            if (again := storing_again(local)) is None:
                return []
            under_way = replace(STORING_OUTPUTS, retries=again.retries)
            return [*self.keep(replace(local, outputs=under_way)), again]
        move, action = following
        notice = action.notice if isinstance(action, Halt) else None
        moved = replace(local, phase=after(local, move), since=now, notice=notice or local.notice)
        self._locals[execution] = moved
        told = report(moved) if moved.phase is LocalState.PREPARING else None
        return [action] if told is None else [Tell(report=told), action]

    def forget(self, local: LocalExecution) -> None:
        """Remember of an execution that was cleared away only what its peers may still ask."""
        del self._locals[local.execution]
        if local.terms is not None:
            others = bool(self._part(local.terms.attempt_id))
            self._past.add(local.terms, well=local.end.well, others=others)
            self._past.trim({each.terms.attempt_id for each in self._locals.values() if each.terms is not None})

    def _part(self, attempt_id: AttemptId) -> list[LocalExecution]:
        return [
            local for local in self._locals.values() if local.terms is not None and local.terms.attempt_id == attempt_id
        ]
