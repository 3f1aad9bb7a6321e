"""A runtime that takes its time, fails and hangs; what it does changes the truth of its node."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

from agent.core.actions import Arm, Halt, LedgerAction, Prepare, Remove, Start, StoreAgain, Tell
from agent.core.events import (
    ActionFailed,
    Armed,
    Event,
    Exited,
    Fenced,
    Halted,
    OutputsSeen,
    Prepared,
    Progressed,
    Removed,
    Started,
)
from agent.core.terms import Terms
from muster.domain.data.outputs import STORING_OUTPUTS, ExecutionOutputs, OutputsStage
from muster.domain.gangs.plan import Assignment
from muster.domain.gangs.roster import PortLease
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import FailureKind
from muster.domain.jobs.ports import ports_of
from tests.simulation.agent_logs import AgentLogs
from tests.simulation.agent_saves import save_last, save_now_and_then
from tests.simulation.agent_uses import watch_use
from tests.simulation.troubles import Troubles
from tests.simulation.truth import KILLED, Loss, Note, Sandbox, SimulatedNode
from tests.simulation.world import SECOND, Life, Timer

KINDS = tuple(FailureKind)
FIRST_PORT = 20_000
AWAY_LIMIT = 60.0
"""Seconds for which an action waits for Docker, as in `agent/runtimes/docker/engine/connection.py`."""
TICK = 1e-5
"""Seconds; a clock cannot wait for less."""
LATE_START = 5.0
"""Most seconds that a late start takes longer than others."""
UNDER_WAY = 0.2
"""Seconds in which a start may still come about after its agent has died."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """What a runtime calls of its agent."""

    put: Callable[[Event], None]
    may_start: Callable[[ExecutionId], bool]
    have_code: Callable[[Sandbox, Callable[[], None]], None]
    """Goes on once an execution has the code that it wants."""


class AgentRuntime:
    """Carries out the actions of one life of an agent."""

    def __init__(
        self,
        life: Life,
        node: SimulatedNode,
        calls: Calls,
        logs: AgentLogs,
        troubles: Troubles,
    ) -> None:
        self._may_start = calls.may_start
        self._have_code = calls.have_code
        self._life = life
        self._node = node
        self._put = calls.put
        self._logs = logs
        self._troubles = troubles
        self._chance = node.chance
        self._store_chance = node.world.chance(f"stores {node.name}")
        self._preparing: dict[ExecutionId, Timer | None] = {}
        """What is to end each preparation; None: it hangs."""
        self._halted_at: dict[ExecutionId, float] = {}
        """When the order to stop is carried out; nothing else is asked of the sandbox before."""
        self._next_port = FIRST_PORT + node.chance.randrange(10_000)
        self._live: dict[ExecutionId, None] = {}

    def recovered(self) -> Iterator[Sandbox]:
        """What is left from a former life, as far as somebody tells; everything else is cleared away."""
        for execution, sandbox in list(self._node.sandboxes.items()):
            if sandbox.in_docker and self._node.engine_away and not sandbox.start_noted:
                continue
            if sandbox.adoptable:
                sandbox.used.clear()  # what an agent saw just before its end nobody heard of
                self._live[execution] = None
                yield sandbox
            else:
                self._sweep(sandbox)

    def clear_leftovers(self) -> None:
        """Docker was away at the start and is back: what nobody knows of is removed."""
        for execution, sandbox in list(self._node.sandboxes.items()):
            if execution not in self._live:
                self._sweep(sandbox)

    def _sweep(self, sandbox: Sandbox) -> None:
        self._node.end_code(sandbox, KILLED)
        self._node.sweep(sandbox.execution)

    def carry_out(self, action: LedgerAction) -> None:
        match action:
            case Prepare():
                self._prepare(action.assignment)
            case Arm():
                self._arm(action)
            case Start():
                self._start(action.execution)
            case Halt():
                self._halt(action)
            case Remove():
                self._remove(action.execution)
            case StoreAgain():
                outputs = replace(_stored(action.execution).outputs, retries=action.retries)
                self._put(OutputsSeen(execution=action.execution, outputs=outputs))
            case Tell():
                pass

    def counts_as_started(self, sandbox: Sandbox) -> bool:
        """Whether it was, or may have been as long as Docker does not tell."""
        return sandbox.started or (sandbox.in_docker and self._node.engine_away and sandbox.start_noted)

    def counts_as_ended(self, sandbox: Sandbox) -> bool:
        """Whether it is known to have, and how is still to be told."""
        away = sandbox.in_docker and self._node.engine_away
        return sandbox.started and sandbox.exit is not None and sandbox.lost is None and not away

    def await_exit(self, sandbox: Sandbox) -> None:
        """Tell when user code has ended, or at once that it has, or that it never began."""
        if not sandbox.started:
            words = "the agent was restarted before user code ran"
            kind = FailureKind.AGENT_RESTARTED
            self._with_engine(
                sandbox,
                lambda: self.await_exit(sandbox) if sandbox.started else self._cannot_tell(sandbox, kind, words),
            )
            return
        if sandbox.exit is not None:
            self._with_engine(sandbox, lambda: self._exited(sandbox))
            return
        sandbox.on_exit = lambda: self._with_engine(sandbox, lambda: self._exited(sandbox))

    def _exited(self, sandbox: Sandbox) -> None:
        exit_ = sandbox.exit
        assert exit_ is not None
        sandbox.on_exit = None
        patience = (0.3 if exit_.code else 0.01) * self._chance.random()
        save_last(self._life, sandbox, self._put, self._store_chance)
        if sandbox.behaviour.storing is not None:
            self._put(OutputsSeen(execution=sandbox.execution, outputs=STORING_OUTPUTS))
            self._store(sandbox, sandbox.behaviour.storing)
        if sandbox.lost is not None:
            kind = FailureKind.AGENT_RESTARTED if sandbox.lost is Loss.NODE else FailureKind.RUNTIME
            self._cannot_tell(sandbox, kind, sandbox.lost)
        elif self._chance.random() < self._troubles.exit:
            self._cannot_tell(sandbox, FailureKind.RUNTIME, "no exit code")
        else:
            if exit_.code and sandbox.fenced:
                fenced = Fenced(execution=sandbox.execution, grace=timedelta(), message=sandbox.fenced)
                self._life.after(0.01 * self._chance.random(), lambda: self._put(fenced))
            self._once_halted(
                sandbox.execution, patience, lambda: self._put(Exited(execution=sandbox.execution, exit=exit_))
            )
            drained = patience + (2.0 if self._chance.random() < 0.2 else 0.01) * self._chance.random()
            self._once_halted(sandbox.execution, drained, lambda: self._logs.finish(sandbox.execution))

    def _store(self, sandbox: Sandbox, seconds: float) -> None:
        """Store what is not stored yet, and tell so only after that; who dies meanwhile begins anew."""

        def stored() -> None:
            sandbox.stored = True
            self._life.after(0.01 * self._store_chance.random(), lambda: self._put(_stored(sandbox.execution)))

        self._life.after(0.0 if sandbox.stored else seconds * self._store_chance.random(), stored)

    def _cannot_tell(self, sandbox: Sandbox, kind: FailureKind, message: str) -> None:
        failed = ActionFailed(execution=sandbox.execution, kind=kind, message=message)
        self._life.after(0.01 * self._chance.random(), lambda: self._put(failed))

    def _once_halted(self, execution: ExecutionId, patience: float, act: Callable[[], None]) -> None:
        """After some seconds, and after an order to stop was carried out."""

        def look() -> None:
            left = self._halted_at.get(execution, 0.0) - self._life.clock.seconds
            if left > 0:
                self._life.after(min(left + TICK, 1.0), look)
            else:
                act()

        self._life.after(max(patience, min(1.0, self._until_halted(execution))), look)

    def _until_halted(self, execution: ExecutionId) -> float:
        return max(0.0, self._halted_at.get(execution, 0.0) - self._life.clock.seconds)

    def _with_engine(self, sandbox: Sandbox, act: Callable[[], None], refuse: Callable[[], None] | None = None) -> None:
        """Once Docker answers, if it must; in vain for long, refused."""
        if not sandbox.in_docker or not self._node.engine_away:
            act()
            return
        waiting = True

        def changed() -> None:
            nonlocal waiting
            if self._life.over or not waiting:
                return
            if self._node.engine_away:
                self._node.on_engine.append(changed)
                return
            waiting = False
            self._life.after(2.0 * self._chance.random(), lambda: self._with_engine(sandbox, act, refuse))

        def give_up() -> None:
            nonlocal waiting
            if waiting and refuse is not None:
                waiting = False
                refuse()

        self._node.on_engine.append(changed)
        if refuse is not None:
            self._life.after(AWAY_LIMIT, give_up)

    def _refuse(self, execution: ExecutionId) -> None:
        failed = ActionFailed(execution=execution, kind=FailureKind.RUNTIME, message="Docker does not answer")
        self._put(failed)

    def _prepare(self, assignment: Assignment) -> None:
        execution = assignment.execution
        sandbox = Sandbox(assignment=assignment, behaviour=self._node.nature.behaviour(assignment))
        self._node.sandboxes[execution] = sandbox
        self._live[execution] = None
        self._logs.follow(execution, 0)
        self._node.nature.sandbox_made(self._node, sandbox)
        took = self._duration(4.0)
        if self._chance.random() < 0.3:
            detail = Progressed(execution=execution, detail="pulling the image 41 %")
            self._life.after(took / 2, lambda: self._progress(execution, detail))
        if self._chance.random() < self._troubles.hang:
            self._preparing[execution] = None
            return

        def end() -> None:
            if self._preparing.pop(execution, self) is self or self._fails(execution, self._troubles.prepare):
                return
            sandbox.ports = self._ports(assignment)
            terms = Terms(
                job=assignment.job, attempt=assignment.attempt, grace=assignment.grace, fence=assignment.fence
            )
            sandbox.note = Note(address=self._node.address, ports=sandbox.ports, terms=terms)
            self._put(Prepared(execution=execution, address=self._node.address, ports=sandbox.ports))

        def refuse() -> None:
            if self._preparing.pop(execution, self) is not self:
                self._refuse(execution)

        def make() -> None:
            self._with_engine(sandbox, end, refuse)

        self._preparing[execution] = self._life.after(took, lambda: self._have_code(sandbox, make))

    def _progress(self, execution: ExecutionId, detail: Progressed) -> None:
        if execution in self._preparing:
            self._put(detail)

    def _arm(self, action: Arm) -> None:
        execution = action.assignment.execution
        sandbox = self._node.sandboxes[execution]

        def end() -> None:
            if not self._fails(execution, self._troubles.arm):
                sandbox.roster = action.roster
                self._put(Armed(execution=execution))

        def refuse() -> None:
            self._refuse(execution)

        self._life.after(self._duration(0.5), lambda: self._with_engine(sandbox, end, refuse))

    def _start(self, execution: ExecutionId) -> None:
        sandbox, boots = self._node.sandboxes[execution], self._node.boots
        if not self._may_start(execution):
            failed = ActionFailed(execution=execution, kind=FailureKind.NODE_LOST, message="cut off before the start")
            self._put(failed)
            return

        def end() -> None:
            """What was ordered comes about also when the agent has just died."""
            if self._node.boots != boots or self._node.sandboxes.get(execution) is not sandbox:
                return
            died_at = self._life.ended_at
            if died_at is not None and self._node.world.at - died_at > UNDER_WAY * SECOND:
                return
            if died_at is None and self._fails(execution, self._troubles.start):
                return
            sandbox.start_noted = True
            if not (sandbox.in_docker and self._node.engine_away):
                self._node.start_code(sandbox)
                self._life.after(0.02 * self._chance.random(), lambda: self._started(sandbox))
            elif died_at is None:
                self._with_engine(sandbox, end, lambda: self._refuse(execution))

        took = self._duration(0.3)
        if self._troubles.late_start and self._chance.random() < self._troubles.late_start:
            took += LATE_START * self._chance.random()
        self._node.world.after(took / self._life.clock.rate, end)

    def _started(self, sandbox: Sandbox) -> None:
        self._logs.grow(sandbox.execution, sandbox.behaviour.log)
        self._put(Started(execution=sandbox.execution))
        watch_use(self._life, sandbox, self._put, self._node.world.chance(f"use {sandbox.execution}"))
        save_now_and_then(self._life, sandbox, self._put, self._node.world.chance(f"save {sandbox.execution}"))
        if sandbox.note is not None:
            sandbox.note.started_at = self._life.clock.now

    def _halt(self, action: Halt) -> None:
        execution = action.execution
        if execution in self._preparing:
            timer = self._preparing.pop(execution)
            if timer is not None:
                timer.cancel()
        sandbox = self._node.sandboxes.get(execution)
        if sandbox is not None and action.fenced and not sandbox.fenced:
            sandbox.fenced = action.fenced
            self._node.nature.fenced(self._node, sandbox)
            self._node.world.tell(f"cuts off {execution}: {action.fenced}", self._node.name, sandbox.assignment.job)
        if sandbox is not None and sandbox.started:
            late = 30.0 if self._chance.random() < self._troubles.stop else 0.05
            self._halted_at[execution] = math.inf
            self._life.after(late * self._chance.random(), lambda: self._terminate(sandbox, action.grace))
        else:
            self._halted(execution, 0.05 * self._chance.random())

    def _terminate(self, sandbox: Sandbox, grace: timedelta) -> None:
        seconds = grace.total_seconds() / self._life.clock.rate

        def act() -> None:
            self._node.terminate(sandbox, seconds)
            self._halted(sandbox.execution, min(seconds, sandbox.behaviour.on_term) if sandbox.running else 0.0)

        self._with_engine(sandbox, act)

    def _halted(self, execution: ExecutionId, took: float) -> None:
        self._halted_at[execution] = self._life.clock.seconds + took
        self._life.after(took, lambda: self._put(Halted(execution=execution)))

    def _remove(self, execution: ExecutionId) -> None:
        sandbox = self._node.sandboxes.get(execution)

        def end() -> None:
            if sandbox is not None:
                self._node.sandboxes.pop(execution, None)
                sandbox.on_exit = None
                self._node.end_code(sandbox, KILLED)
            self._live.pop(execution, None)
            self._logs.forget(execution)
            self._put(Removed(execution=execution))

        def remove() -> None:
            if sandbox is None:
                end()
            else:
                self._with_engine(sandbox, end)

        self._once_halted(execution, self._duration(0.2), remove)

    def _fails(self, execution: ExecutionId, likelihood: float) -> bool:
        if not likelihood or self._chance.random() >= likelihood:
            return False
        kind = KINDS[self._chance.randrange(len(KINDS))]
        self._put(ActionFailed(execution=execution, kind=kind, message=f"a trouble of kind {kind}"))
        return True

    def _duration(self, typical: float) -> float:
        slow = self._troubles.slow and self._chance.random() < self._troubles.slow
        return typical * self._chance.random() * (20.0 if slow else 1.0)

    def _ports(self, assignment: Assignment) -> tuple[PortLease, ...]:
        leases = []
        for request in ports_of(assignment.role, assignment.rank, assignment.network):
            self._next_port += 1
            number = request.port or self._next_port
            leases.append(PortLease(name=request.name, host_port=number, container_port=number))
        return tuple(leases)


def _stored(execution: ExecutionId) -> OutputsSeen:
    return OutputsSeen(
        execution=execution,
        outputs=ExecutionOutputs(stage=OutputsStage.STORED, tree=f"tree of {execution}", files=1, bytes=1),
    )
