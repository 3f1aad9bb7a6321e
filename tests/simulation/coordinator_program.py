"""The coordinator as a program that can crash: the real core and a real store, with the engine's order of things.

What becomes one turn is decided by `coordinator/core/turn/batching.py`, as in the engine. What the engine and the
service for agents do with asyncio, a disk and gRPC stands here in virtual time: commit once, answer, perform effects.
"""

from collections.abc import Callable
from datetime import datetime
from random import Random

from coordinator.core.answers import Answer, Refused
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.effects import AnnounceJob, CloseSession, Effect, ForgetLogs, SendPlan
from coordinator.core.events import (
    Event,
    ExecutionsReported,
    HeartbeatReceived,
    InventoryChanged,
    NodeConnected,
    NodeDisconnected,
)
from coordinator.core.loading import load
from coordinator.core.records import Change, Put
from coordinator.core.scheduling.order import within_project
from coordinator.core.turn.batching import BATCH, HOLD, OpenTurn
from coordinator.core.turn.turn import Turn
from coordinator.store.records.memory import MemoryStore
from coordinator.store.store import Snapshot, snapshot_of
from muster.domain.fleet.access import Project
from muster.domain.fleet.features import ALL_FEATURES
from muster.domain.fleet.node import Inventory
from muster.domain.gangs.plan import Plan
from muster.domain.ids import ExecutionId, NodeId
from muster.domain.jobs.job import DEFAULT_PROJECT
from tests.simulation.coordinator_parts import Asked, Observer, Question, Reply, Session
from tests.simulation.cores import REAL, Cores
from tests.simulation.messages import Heartbeat, HeartbeatAck, Hello, LogAck, LogChunk, Reports, Welcome
from tests.simulation.network import Stream
from tests.simulation.weakness import Weakness
from tests.simulation.world import EPOCH, Clock, Life, Timer, Violation, World

REST = 1.0
"""Seconds for which a store that failed is left alone, as in the engine."""
TICK = 1e-5
"""Seconds that alarms come late: a clock that runs at another rate counts to whole microseconds."""


class CoordinatorProgram:
    """Alive or dead; the store and the logs outlive it."""

    def __init__(
        self, world: World, observer: Observer, chance: Random, cores: Cores = REAL, clock_rate: float = 1.0
    ) -> None:
        self.weakness = Weakness()
        self.store = MemoryStore()
        self.store.commit([Put(record=Project(name=DEFAULT_PROJECT, created_at=EPOCH))])  # as the first start does
        self.logs: dict[ExecutionId, int] = {}
        """Bytes of each log that are kept."""
        self.crashed: Callable[[], None] = lambda: None
        """Told after a crash that nobody ordered."""
        self.cluster = Cluster(within_project)
        self.started_at = 0.0
        """The start in true seconds."""
        self.on_start: list[Callable[[], None]] = []
        """Calls for when it listens."""
        self.clock = Clock(world, clock_rate)
        self._world = world
        self._observer = observer
        self._cores = cores
        self._chance = chance
        self._life: Life | None = None
        self._inbox: list[Asked] = []
        self._sessions: dict[int, Session] = {}
        self._last_session = 0
        self._turning = False
        self._open: OpenTurn[Asked] | None = None
        """The turn that waits for others."""
        self._closing: Timer | None = None
        """What closes it if nobody comes."""
        self._alarm: tuple[datetime, Timer] | None = None
        self._uncommitted: tuple[Change, ...] = ()

    @property
    def up(self) -> bool:
        return self._life is not None

    def start(self) -> None:
        """Load what is stored and listen."""
        self._life, self.started_at = Life(self.clock), self._world.seconds
        self.cluster = self._load()
        self._world.tell("starts", "coordinator")
        self._observer.loaded(self.cluster)
        self._set_alarm()
        waiting, self.on_start = self.on_start, []
        for wake in waiting:
            wake()

    def _load(self) -> Cluster:
        return self._loaded(self.store.load())

    def _loaded(self, kept: Snapshot) -> Cluster:
        return load(kept.records, self.clock.now, b"key of the fleet")

    def crash(self, *, silently: bool = False) -> None:
        """Die at once; a commit that is under way may or may not succeed."""
        if self._life is None:
            return
        self._world.tell("crashes", "coordinator")
        if self._uncommitted and self._chance.random() < 0.5:
            self._commit(self._uncommitted)
        self._life.end()
        self._life = None
        for session in self._sessions.values():
            session.ended = True
            session.stream.drop(silently=silently)
        self._sessions, self._inbox = {}, []
        self._turning, self._open, self._closing, self._uncommitted, self._alarm = False, None, None, (), None

    # what is asked of it

    def ask(self, event: Event, reply: Reply | None = None) -> bool:
        """Take an event in; False: there is nobody."""
        if self._life is None:
            return False
        self._inbox.append(Asked((event,), reply))
        self._turn_soon()
        return True

    def read(self, question: Question) -> None:
        """Have something read once everything before it is durable."""
        self._inbox.append(Asked((), question=question))
        self._turn_soon()

    def hear_first(self, node: NodeId, stream: Stream, hello: Hello) -> Session | None:
        """A new stream; None: nobody listens."""
        if self._life is None:
            stream.drop()
            return None
        session = self._open_session(node, stream)
        connected = NodeConnected(
            node=node,
            session=session.number,
            identity=hello.identity,
            version="1",
            address=hello.address,
            inventory=hello.inventory,
            reports=hello.reports,
            opened=hello.opened,
            peer_port=hello.peer_port,
            features=ALL_FEATURES,
        )
        self.ask(connected, lambda answer: self._greet(session, answer))
        return session

    def hear(self, session: Session, message: object) -> None:
        """A later message of a stream."""
        if session.ended:
            return
        if not session.welcomed:
            session.early.append(message)
            return
        node, number = session.node, session.number
        match message:
            case Heartbeat():
                ack = HeartbeatAck(sequence=message.sequence)
                self.ask(
                    HeartbeatReceived(node=node, session=number, plan_revision=message.plan_revision),
                    lambda answer: None if isinstance(answer, Refused) else session.stream.down.send(ack),
                )
            case Inventory():
                self.ask(InventoryChanged(node=node, session=number, inventory=message))
            case Reports():
                self.ask(ExecutionsReported(node=node, session=number, reports=message.reports))
            case LogChunk():
                self.read(lambda cluster: self._keep_log(session, message, cluster))

    def end_session(self, session: Session) -> None:
        """A stream has ended, at either end."""
        if session.ended or self._life is None:
            return
        session.ended = True
        del self._sessions[session.number]
        session.stream.drop()
        self.ask(NodeDisconnected(node=session.node, session=session.number))

    def _open_session(self, node: NodeId, stream: Stream) -> Session:
        self._last_session += 1
        session = Session(number=self._last_session, node=node, stream=stream)
        self._sessions[session.number] = session
        return session

    def _shut(self, session: Session) -> None:
        """The stream ends soon: what it has just received may still be taken in."""
        assert self._life is not None
        lag = self.weakness.tardiness * self._chance.random()
        self._life.after(lag, lambda: self.end_session(session))

    def _greet(self, session: Session, answer: Answer) -> None:
        if session.ended:
            return
        if isinstance(answer, Refused):
            self._world.tell(f"refuses: {answer.message}", session.node)
            self.end_session(session)
            return
        session.welcomed = True
        session.stream.down.send(Welcome())
        for plan in session.plans:
            session.stream.down.send(plan)
        for message in session.early:
            self.hear(session, message)

    def _keep_log(self, session: Session, chunk: LogChunk, cluster: Cluster) -> None:
        known = cluster.executions.get(chunk.execution)
        if known is None or known.node != session.node:
            session.stream.down.send(LogAck(execution=chunk.execution, unwanted=True), safely=True)
            return
        size = self.logs.setdefault(chunk.execution, 0)
        if chunk.offset <= size:
            size = self.logs[chunk.execution] = max(size, chunk.offset + chunk.length)
        complete = chunk.last and size >= chunk.offset + chunk.length
        ack = LogAck(execution=chunk.execution, offset=size, complete=complete)
        session.stream.down.send(ack, safely=True)

    # turns

    def _turn_soon(self) -> None:
        """Take in what waits, into a turn of its own or into the one that is open."""
        if self._life is not None and self._inbox and (not self._turning or self._open is not None):
            opened = self._reopened()
            self._turning = True
            busy = 0.05 if self._chance.random() < 0.02 else 0.0005
            self._life.after(busy * self._chance.random(), lambda: self._turn(opened))

    def _reopened(self) -> "OpenTurn[Asked] | None":
        """The turn that is open, which nothing else closes from here on."""
        opened, self._open = self._open, None
        if self._closing is not None:
            self._closing.cancel()
            self._closing = None
        return opened

    def _turn(self, opened: "OpenTurn[Asked] | None") -> None:
        now, at = self.clock.now, self.clock.seconds
        if opened is None:
            opened = OpenTurn(self.cluster, now, at + HOLD, self._step, self._cores.finish)
        batch, self._inbox = self._inbox[:BATCH], self._inbox[BATCH:]
        opened.take(batch, now)
        if not opened.stays_open(at):
            self._close(opened)
            return
        assert self._life is not None
        self._open = opened
        self._closing = self._life.after(max(0.0, opened.closes_at - at) + TICK, self._look_again)
        self._set_alarm()
        self._turn_soon()

    def _look_again(self) -> None:
        """Nobody came, or a deadline did."""
        self._turn(self._reopened())

    def _close(self, opened: "OpenTurn[Asked]") -> None:
        """Commit a turn."""
        turn = opened.turn
        changes = turn.changes()
        self._observer.stepped(self.cluster, changes)
        if self._dies(self.weakness.before_commit, "before it commits"):
            return
        if not changes:
            self._perform(opened, changes)
            return
        assert self._life is not None
        self._uncommitted = changes
        slow = self._chance.random() < self.weakness.slow_commit
        taken = self._chance.uniform(0.2, 3.0) if slow else 0.004 * self._chance.random()
        self._life.after(taken, lambda: self._perform(opened, changes))

    def _step(self, turn: Turn, event: Event) -> Answer:
        try:
            return self._cores.step(turn, event)
        except Exception as error:
            raise Violation(f"the core fails at {event}: {type(error).__name__}: {error}", "coordinator") from error

    def _perform(self, opened: "OpenTurn[Asked]", changes: tuple[Change, ...]) -> None:
        self._uncommitted = ()
        turn = opened.turn
        if changes:
            if self._fails(turn, changes):
                return
            self._commit(changes)
            if self._dies(self.weakness.after_commit, "after it committed"):
                return
        for asked, answers in opened.answered():
            if asked.reply is not None:
                asked.reply(answers[0])
            elif asked.question is not None:
                asked.question(self.cluster)
        for effect in turn.take_effects():
            self._carry_out(effect)
            if self._dies(self.weakness.between_effects, "between effects"):
                return
        self._turning = False
        self._turn_soon()
        self._set_alarm()

    def _commit(self, changes: tuple[Change, ...]) -> None:
        self.store.commit(changes)
        self._observer.committed(changes)

    def _fails(self, turn: Turn, changes: tuple[Change, ...]) -> bool:
        """The store may fail, once in a while without knowing whether it kept the changes, and stay unreadable."""
        if not self.weakness.at_commit or self._chance.random() >= self.weakness.at_commit:
            return False
        assert self._life is not None
        self._world.tell("goes back to what was stored before", "coordinator")
        self.cluster, self._inbox = self._loaded(snapshot_of(turn.before())), []
        for session in list(self._sessions.values()):
            self._shut(session)
        self._observer.loaded(self.cluster)
        if self._chance.random() < 0.2:
            self._commit(changes)
        self._life.after(REST * self._chance.randrange(1, 30), self._recover)
        return True

    def _recover(self) -> None:
        """The store can be read again; what came meanwhile was refused."""
        self.cluster = self._load()
        self._observer.loaded(self.cluster)
        self._inbox, self._turning = [], False
        self._set_alarm()

    def _dies(self, likelihood: float, where: str) -> bool:
        if not likelihood or self._chance.random() >= likelihood:
            return False
        self._world.tell(f"fails {where}", "coordinator")
        self._uncommitted = ()
        self.crash()
        self.crashed()
        return True

    def _set_alarm(self) -> None:
        """Have TimePassed come when the earliest deadline does."""
        due = self.cluster.deadlines.next_at
        if due is None or self._life is None:
            return
        if self._alarm is not None:
            if self._alarm[0] == due:
                return
            self._alarm[1].cancel()
        self._alarm = (due, self._life.after(self.clock.left(due) + TICK, self._alarmed))

    def _alarmed(self) -> None:
        """A turn without events; one that is under way is followed by another alarm."""
        self._alarm = None
        if self._open is not None or not self._turning:
            self._turning = True
            self._look_again()

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case SendPlan(node=node, session=number, plan=plan):
                session = self._sessions.get(number)
                if session is not None:
                    self._world.tell(f"sends {_words(plan)}", node)
                    session.stream.down.send(plan) if session.welcomed else session.plans.append(plan)
            case CloseSession(node=node, session=number):
                if number in self._sessions:
                    self._world.tell("closes the stream", node)
                    self._shut(self._sessions[number])
            case ForgetLogs(job=job):
                self.logs = {each: size for each, size in self.logs.items() if not each.startswith(f"{job}-")}
            case AnnounceJob():
                pass


def _words(plan: Plan) -> str:
    lines = [f"{line.execution} to {line.goal.name}" for line in plan.desired]
    lines += [f"{execution} removed" for execution in plan.removed]
    kind = f"change {plan.base}→{plan.revision}" if plan.base else f"whole plan {plan.revision}"
    return f"{kind}: {', '.join(lines) or 'nothing'}"
