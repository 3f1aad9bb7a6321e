"""A runtime that takes its time, fails and hangs; what it does changes the truth of its node."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from agent.core.actions import Action, Arm, Halt, Prepare, Remove, Start, Tell
from agent.core.events import ActionFailed, Armed, Event, Exited, Halted, Prepared, Progressed, Removed, Started
from muster.domain.failure import FailureKind
from muster.domain.ids import ExecutionId
from muster.domain.plan import Assignment
from muster.domain.roster import MASTER_PORT_NAME, PortLease
from tests.simulation.agent_logs import AgentLogs
from tests.simulation.truth import KILLED, Sandbox, SimulatedNode
from tests.simulation.world import Life, Timer

KINDS = tuple(FailureKind)
FIRST_PORT = 20_000


@dataclass(slots=True, kw_only=True)
class Troubles:
    """How often which action goes wrong, and how slow the runtime is."""

    prepare: float = 0.0
    arm: float = 0.0
    start: float = 0.0
    hang: float = 0.0
    """A preparation that ends only when it is interrupted."""
    slow: float = 0.0
    """An action that takes many times as long."""
    stop: float = 0.0
    """An order to stop that must be repeated for a while."""
    exit: float = 0.0
    """An end of user code of which the runtime cannot tell the exit code."""


class AgentRuntime:
    """Carries out the actions of one life of an agent."""

    def __init__(
        self, life: Life, node: SimulatedNode, put: Callable[[Event], None], logs: AgentLogs, troubles: Troubles
    ) -> None:
        self._life = life
        self._node = node
        self._put = put
        self._logs = logs
        self._troubles = troubles
        self._chance = node.chance
        self._preparing: dict[ExecutionId, Timer | None] = {}
        """What is to end each preparation; None: it hangs."""
        self._halted_at: dict[ExecutionId, float] = {}
        """When the order to stop is carried out; nothing else is asked of the sandbox before."""
        self._next_port = FIRST_PORT + node.chance.randrange(10_000)

    def recovered(self) -> Iterator[Sandbox]:
        """What is left from a former life: containers that were armed. Everything else is cleared away."""
        for execution, sandbox in list(self._node.sandboxes.items()):
            if sandbox.outlives_agent and sandbox.roster is not None:
                yield sandbox
                continue
            self._node.end_code(sandbox, KILLED)
            self._node.sweep(execution)

    def carry_out(self, action: Action) -> None:
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
            case Tell():
                pass

    def await_exit(self, sandbox: Sandbox) -> None:
        """Tell when user code has ended, or at once that it has."""
        if sandbox.exit is None:
            sandbox.on_exit = lambda: self._exited(sandbox)
        else:
            self._exited(sandbox)

    def _exited(self, sandbox: Sandbox) -> None:
        exit_ = sandbox.exit
        assert exit_ is not None
        patience = (0.3 if exit_.code else 0.01) * self._chance.random()
        patience = max(patience, self._until_halted(sandbox.execution))
        if self._chance.random() < self._troubles.exit:
            failed = ActionFailed(execution=sandbox.execution, kind=FailureKind.RUNTIME, message="no exit code")
            self._life.after(patience, lambda: self._put(failed))
            return
        self._life.after(patience, lambda: self._put(Exited(execution=sandbox.execution, exit=exit_)))
        drained = patience + (2.0 if self._chance.random() < 0.2 else 0.01) * self._chance.random()
        self._life.after(drained, lambda: self._logs.finish(sandbox.execution))

    def _until_halted(self, execution: ExecutionId) -> float:
        return max(0.0, self._halted_at.get(execution, 0.0) - self._node.world.seconds)

    def _prepare(self, assignment: Assignment) -> None:
        execution = assignment.execution
        sandbox = Sandbox(assignment=assignment, behaviour=self._node.nature.behaviour(assignment))
        self._node.sandboxes[execution] = sandbox
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
            del self._preparing[execution]
            if self._fails(execution, self._troubles.prepare):
                return
            sandbox.ports = self._ports(assignment)
            self._put(Prepared(execution=execution, address=self._node.address, ports=sandbox.ports))

        self._preparing[execution] = self._life.after(took, end)

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

        self._life.after(self._duration(0.5), end)

    def _start(self, execution: ExecutionId) -> None:
        sandbox = self._node.sandboxes[execution]

        def end() -> None:
            if self._fails(execution, self._troubles.start):
                return
            self._node.start_code(sandbox)
            self._logs.grow(execution, sandbox.behaviour.log)
            self._life.after(0.02 * self._chance.random(), lambda: self._put(Started(execution=execution)))

        self._life.after(self._duration(0.3), end)

    def _halt(self, action: Halt) -> None:
        execution = action.execution
        if execution in self._preparing:
            timer = self._preparing.pop(execution)
            if timer is not None:
                timer.cancel()
        sandbox = self._node.sandboxes.get(execution)
        took = 0.05 * self._chance.random()
        if sandbox is not None and sandbox.started:
            grace = action.grace.total_seconds()
            if self._chance.random() < self._troubles.stop:
                took += 30.0 * self._chance.random()
            self._life.after(took, lambda: self._node.terminate(sandbox, grace))
            took += min(grace, sandbox.behaviour.on_term)
        self._halted_at[execution] = self._node.world.seconds + took
        self._life.after(took, lambda: self._put(Halted(execution=execution)))

    def _remove(self, execution: ExecutionId) -> None:
        def end() -> None:
            sandbox = self._node.sandboxes.pop(execution, None)
            if sandbox is not None:
                sandbox.on_exit = None
                self._node.end_code(sandbox, KILLED)
            self._logs.forget(execution)
            self._put(Removed(execution=execution))

        self._life.after(self._until_halted(execution) + self._duration(0.2), end)

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
        wanted = [request.name for request in assignment.role.ports]
        if assignment.rank == 0 and MASTER_PORT_NAME not in wanted:
            wanted.insert(0, MASTER_PORT_NAME)
        leases = []
        for name in wanted:
            self._next_port += 1
            leases.append(PortLease(name=name, host_port=self._next_port, container_port=self._next_port))
        return tuple(leases)
