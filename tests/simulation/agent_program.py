"""An agent as a program that can crash: the real core, with the order of things of its loop, link and log pusher.

What `agent/loop/loop.py`, `agent/link.py` and `agent/logs/push.py` do with asyncio and gRPC stands here in virtual
time.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

from agent.core.actions import Action, AnswerPeer, AskPeers, LeavePeers, NoteDeadlines, Tell
from agent.core.events import (
    Began,
    Event,
    Exited,
    FenceTimePassed,
    LogCompleted,
    PeerAsked,
    PlanReceived,
    Recovered,
    Started,
)
from agent.core.step import AgentState, Now
from muster.domain.gangs.fence import PeerWord
from muster.domain.gangs.plan import Report, Stage
from muster.domain.ids import AttemptId, ExecutionId
from tests.simulation.agent_code import AgentCode
from tests.simulation.agent_fence import AgentFence
from tests.simulation.agent_link import AgentLink
from tests.simulation.agent_logs import AgentLogs
from tests.simulation.agent_runtime import AgentRuntime, Calls
from tests.simulation.coordinator_program import CoordinatorProgram
from tests.simulation.cores import REAL, Cores
from tests.simulation.messages import Hello, Reports
from tests.simulation.peers import PORT, Peers
from tests.simulation.troubles import Troubles
from tests.simulation.truth import Sandbox, SimulatedNode
from tests.simulation.world import SECOND, Clock, Life, Timer, Violation

REFRESH = 30.0
"""Seconds between two looks at the inventory, as in `agent/node.py`."""
WAKING = 0.5
RECOVERY = 2.0
"""Shortest and longest time until a new agent looks for what is left from before."""
TICK = 1e-4
"""Seconds that alarms come late."""


@dataclass(slots=True, kw_only=True)
class Frailty:
    """How often an agent dies beside an action."""

    at_action: float = 0.0
    troubles: Troubles = field(default_factory=Troubles)


class AgentProgram:
    """The agent of one node, dead or alive."""

    def __init__(
        self,
        clock: Clock,
        node: SimulatedNode,
        coordinator: CoordinatorProgram,
        peers: Peers,
        frailty: Frailty,
        cores: Cores = REAL,
    ) -> None:
        world = clock.world
        self.node = node
        self.frailty = frailty
        self.crashed: Callable[[], None] = lambda: None
        """Told after a crash that nobody ordered."""
        self.clock = clock
        self.state = AgentState(clock.seconds)
        self.link: AgentLink | None = None
        self.gone = False
        """Whether the node has lost its power for good."""
        self._core = cores.agent
        self._stream_core = cores.stream
        self._world = world
        self._coordinator = coordinator
        self._peers = peers
        peers.join(node.name, node.address)
        self._chance: Random = world.chance(f"agent {node.name}")
        self._life: Life | None = None
        self._events: list[Event] = []
        self._told: list[tuple[Report, ...]] = []
        self._alarm: tuple[float, Timer] | None = None
        self._runtime: AgentRuntime
        self._fence: AgentFence
        self._logs: AgentLogs

    @property
    def up(self) -> bool:
        return self._life is not None

    def start(self) -> None:
        """Find what is left, then connect; one that lives goes on."""
        if self._life is not None or self.gone:
            return
        self._life = Life(self.clock)
        self._events, self._told, self.state, self._alarm = [], [], AgentState(self.clock.seconds), None
        self._world.tell("agent starts", self.node.name)
        self._life.after(self._chance.uniform(WAKING, RECOVERY), self._begin)

    def crash(self, *, silently: bool = False) -> None:
        """Die at once; user code goes on."""
        if self._life is None:
            return
        self._world.tell("agent crashes", self.node.name)
        self._life.end()
        self._life = None
        self._peers.listen(self.node.address, None)
        if self.link is not None:
            self.link.die(silently=silently)
        self.link, self.node.on_fault = None, None
        for sandbox in list(self.node.sandboxes.values()):
            sandbox.on_exit = None

    def put(self, event: Event) -> None:
        """Something happened; the loop takes it in soon."""
        self._events.append(event)
        if len(self._events) == 1 and self._life is not None:
            lag = 0.03 if self._chance.random() < 0.05 else 0.0005
            self._life.after(lag * self._chance.random(), self._turn)

    def _begin(self) -> None:
        assert self._life is not None
        self._logs = AgentLogs(lambda execution: self.put(LogCompleted(execution=execution)))
        self._fence = AgentFence(self._life, self.node, self._peers, self.put, self._answer)
        code = AgentCode(self._life, self._coordinator, self._world.chance(f"code at {self.node.name}"))
        calls = Calls(put=self.put, may_start=self._may_start, have_code=code.have)
        self._runtime = AgentRuntime(self._life, self.node, calls, self._logs, self.frailty.troubles)
        for sandbox in self._runtime.recovered():
            started = self._runtime.counts_as_started(sandbox)
            recovered = replace(_recovered(sandbox, started=started), ended=self._runtime.counts_as_ended(sandbox))
            self._core(self.state, recovered, self._now())
            self._adopt(sandbox, started=started)
        self._engine_was_away = self.node.engine_away
        for action in self._core(self.state, Began(noted=self.node.killer.noted()), self._now()):
            self._carry_out(action)
        self._set_alarm(self.state.wake_at)
        self._inventory = self.node.inventory()
        self.node.on_fault = self._hear_fault
        self._life.after(REFRESH, self._refresh)
        self.link = AgentLink(self._world, self._life, self.node, self._coordinator, self, self._stream_core)
        self.link.connect()

    def _adopt(self, sandbox: Sandbox, *, started: bool) -> None:
        self._world.tell(f"adopts rank {sandbox.assignment.rank}", self.node.name, sandbox.assignment.job)
        self._logs.follow(sandbox.execution, sandbox.behaviour.log if sandbox.started else 0)
        if started:
            self._runtime.await_exit(sandbox)
        else:
            self._logs.finish(sandbox.execution)

    # what its link asks

    def hello(self) -> Hello:
        """The whole truth as the ledger knows it now."""
        return Hello(
            identity=self.node.identity,
            address=self.node.address,
            inventory=self._inventory,
            reports=self.state.reports(self.clock.seconds),
            opened=round(self.clock.seconds * SECOND),
            peer_port=PORT,
        )

    def freeze(self, seconds: float) -> None:
        """Pause the agent, as a debugger does it; user code and killer go on."""
        if self._life is not None:
            self._world.tell(f"agent is paused for {seconds:.1f} s", self.node.name)
            self._life.freeze(seconds)

    def applied(self, stream: int) -> int:
        """Revision of the last plan on a stream that was applied."""
        return self.state.ledger.applied(stream)

    @property
    def logs(self) -> AgentLogs:
        return self._logs

    # its loop

    def _now(self) -> Now:
        return Now(wall=self.clock.now, boot=self.clock.seconds)

    def _turn(self) -> None:
        events, self._events = self._events, []
        reports: list[Report] = []
        for event in events:
            for action in self._step(event):
                if isinstance(action, Tell):
                    reports.append(action.report)
                    self._end_log(action.report)
                else:
                    self._carry_out(action)
                if self.frailty.at_action and self._chance.random() < self.frailty.at_action:
                    self.crash()
                    self.crashed()
                    return
            if isinstance(event, Started):
                self._runtime.await_exit(self.node.sandboxes[event.execution])
        self._set_alarm(self.state.wake_at)
        if reports:
            self._told.append(tuple(reports))
            assert self._life is not None
            self._life.after(0.001 * self._chance.random(), self._tell)

    def _carry_out(self, action: Action) -> None:
        match action:
            case NoteDeadlines():
                self._fence.note(action)
            case AskPeers():
                self._fence.ask(action)
            case LeavePeers() | AnswerPeer():
                pass
            case _:
                self._runtime.carry_out(action)

    def _set_alarm(self, due: float | None) -> None:
        """Have FenceTimePassed come then."""
        if self._alarm is not None:
            if self._alarm[0] == due:
                return
            self._alarm[1].cancel()
            self._alarm = None
        if due is not None:
            assert self._life is not None
            self._alarm = due, self._life.after(max(0.0, due - self.clock.seconds) + TICK, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self.put(FenceTimePassed())

    def _answer(self, attempt: AttemptId) -> PeerWord:
        """What a peer hears."""
        given = self._core(self.state, PeerAsked(attempt=attempt), self._now())
        return next(action.word for action in given if isinstance(action, AnswerPeer))

    def _may_start(self, execution: ExecutionId) -> bool:
        return self.state.fencing.may_start(execution, self.clock.seconds)

    def _step(self, event: Event) -> list[Action]:
        before = self.state.ledger.applied(event.stream) if isinstance(event, PlanReceived) else 0
        try:
            actions = self._core(self.state, event, self._now())
        except Exception as error:
            job = getattr(event, "execution", "-").partition("-")[0]
            message = f"the core of {self.node.name} fails at {event}: {type(error).__name__}: {error}"
            raise Violation(message, self.node.name, job) from error
        if isinstance(event, PlanReceived) and (revision := self.state.ledger.applied(event.stream)) < before:
            raise Violation(f"{self.node.name} applied plan {revision} after plan {before}", self.node.name)
        if isinstance(event, Exited) or actions:
            name = type(event).__name__
            about = getattr(event, "execution", "")
            orders = [type(action).__name__ for action in actions if not isinstance(action, Tell)]
            job = about.partition("-")[0]
            self._world.tell(f"{name} {about}{' → ' if orders else ''}{', '.join(orders)}", self.node.name, job)
        return actions

    def _end_log(self, report: Report) -> None:
        """An execution that never ran prints nothing more; one that never had a directory never printed."""
        if report.stage not in {Stage.FAILED, Stage.STOPPED} or report.log_complete:
            return
        if self._logs.follows(report.execution):
            self._logs.finish(report.execution)
        else:
            self.put(LogCompleted(execution=ExecutionId(report.execution)))

    def _tell(self) -> None:
        for reports in self._told:
            if self.link is not None:
                self.link.send(Reports(reports=reports))
        self._told.clear()

    # its inventory

    def _refresh(self) -> None:
        assert self._life is not None
        self._life.after(REFRESH, self._refresh)
        self._look_again()

    def _hear_fault(self) -> None:
        assert self._life is not None
        self._life.after(0.2 * self._chance.random(), self._look_again)

    def _look_again(self) -> None:
        if self._engine_was_away and not self.node.engine_away:
            self._engine_was_away = False
            self._runtime.clear_leftovers()
        inventory = self.node.inventory()
        if inventory != self._inventory and self.link is not None:
            self._inventory = inventory
            self.link.send(inventory)


def _recovered(sandbox: Sandbox, *, started: bool) -> Recovered:
    """What is known of an execution of an earlier agent."""
    note = sandbox.note
    if note is None:
        return Recovered(execution=sandbox.execution, started=started)
    return Recovered(
        execution=sandbox.execution,
        started=started,
        address=note.address,
        ports=note.ports,
        started_at=note.started_at,
        terms=note.terms,
        fenced=sandbox.fenced,
    )
