"""The agent's end of its streams: moves messages; what they say is decided by `agent/core/stream.py`."""

from random import Random
from typing import Protocol, assert_never

from agent.core.events import Event
from agent.core.stream import (
    Acknowledged,
    Beat,
    Broke,
    Heard,
    Leave,
    Opened,
    PassOn,
    PlanHeard,
    SayHello,
    StreamAction,
    StreamEvent,
    StreamState,
    StreamTimePassed,
    TakeUp,
    Welcomed,
)
from coordinator.core.cluster.cluster import HEARTBEAT_INTERVAL
from muster.domain.gangs.fence import LEASE
from muster.domain.gangs.plan import Plan
from tests.simulation.agent_logs import AgentLogs
from tests.simulation.coordinator_parts import Session
from tests.simulation.coordinator_program import CoordinatorProgram
from tests.simulation.cores import StreamCore
from tests.simulation.messages import Heartbeat, HeartbeatAck, Hello, LogAck, LogChunk, Welcome
from tests.simulation.network import Channel, Stream
from tests.simulation.truth import SimulatedNode
from tests.simulation.world import Life, Timer, World

PATIENCE = 15.0
LISTENS = 1.0
"""Seconds until a coordinator that listens again is noticed, at most."""
TICK = 1e-4
"""Seconds that alarms come late."""


class Owner(Protocol):
    """The agent at this end of the link."""

    @property
    def logs(self) -> AgentLogs: ...

    def hello(self) -> Hello: ...

    def applied(self, stream: int) -> int: ...

    def put(self, event: Event) -> None: ...


class AgentLink:
    """One stream after the other."""

    def __init__(
        self,
        world: World,
        life: Life,
        node: SimulatedNode,
        coordinator: CoordinatorProgram,
        owner: Owner,
        core: StreamCore,
    ) -> None:
        self._world = world
        self._life = life
        self._node = node
        self._coordinator = coordinator
        self._owner = owner
        self._core = core
        self._state = StreamState(PATIENCE)
        self._chance: Random = world.chance(f"link {node.name}")
        self._connection: _Connection | None = None
        self._alarm: tuple[float, Timer] | None = None

    def connect(self) -> None:
        """Open a stream."""
        if self._connection is None:
            self._connection = _Connection(self)
            self._advance(Opened())

    def send(self, message: object) -> None:
        """Send a message if there is a stream; if there is none, the next Hello tells everything."""
        if self._connection is not None:
            self._connection.stream.up.send(message)

    def lose(self, connection: "_Connection") -> None:
        """A stream has ended from outside."""
        if self._connection is connection:
            self._advance(Broke(cause="it broke"))

    def reset(self) -> None:
        """The connection breaks in the middle."""
        if self._connection is not None:
            self._connection.stream.reset()

    def die(self, *, silently: bool) -> None:
        """The agent is gone."""
        if self._connection is not None:
            self._connection.stream.leave(silently=silently)
        self._connection = None

    # what the stream decides

    def _advance(self, event: StreamEvent) -> None:
        for action in self._core(self._state, event, self._life.clock.seconds):
            self._perform(action)
        self._set_alarm(self._state.wake_at)

    def _perform(self, action: StreamAction) -> None:
        match action:
            case SayHello():
                self.send(self._owner.hello())
            case Beat():
                revision = self._owner.applied(action.stream)
                self.send(Heartbeat(sequence=action.sequence, plan_revision=revision))
            case PassOn():
                self._owner.put(action.event)
            case TakeUp():
                self._owner.logs.stream_opened(self._send_log)
            case Leave():
                self._leave(action.cause)
            case _:
                assert_never(action)

    def _leave(self, cause: str) -> None:
        self._world.tell(f"agent loses its stream: {cause}", self._node.name)
        if self._connection is not None:
            self._connection.stream.leave()
        self._connection = None
        self._owner.logs.stream_lost()
        self._rest(self._state.pause * self._chance.uniform(0.5, 1.5))

    def _rest(self, pause: float) -> None:
        """Where nobody listens, only until somebody does."""
        timer = self._life.after(pause, self.connect)

        def wake() -> None:
            if self._connection is None and not self._life.over and timer.act is not None:
                timer.cancel()
                self._life.after(LISTENS * self._chance.random(), self.connect)

        if not self._coordinator.up and self._node.up.open and self._node.down.open:
            self._coordinator.on_start.append(wake)

    def _set_alarm(self, due: float | None) -> None:
        """Have StreamTimePassed come then, or before: an early alarm sets another one."""
        if self._alarm is not None:
            if due is not None and self._alarm[0] <= due:
                return
            self._alarm[1].cancel()
            self._alarm = None
        if due is not None:
            left = max(0.0, due - self._life.clock.seconds)
            self._alarm = due, self._life.after(left + TICK, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self._advance(StreamTimePassed())

    def _send_log(self, chunk: LogChunk) -> None:
        if self._connection is not None:
            self._connection.stream.up.send(chunk, safely=True)

    # what its connections ask

    def open_stream(self, connection: "_Connection") -> Stream:
        """A stream along the paths of the node."""
        node = self._node
        return Stream(
            up=Channel(node.up, connection.arrive_up, connection.ended_above),
            down=Channel(node.down, connection.arrive_down, lambda: self.lose(connection)),
        )

    def hear_above(self, connection: "_Connection", message: object) -> None:
        """A message has reached the coordinator."""
        if isinstance(message, Hello):
            connection.session = self._coordinator.hear_first(self._node.name, connection.stream, message)
        elif connection.session is not None:
            self._coordinator.hear(connection.session, message)

    def end_above(self, connection: "_Connection") -> None:
        """The coordinator hears that the stream has ended."""
        if connection.session is not None:
            self._coordinator.end_session(connection.session)

    def hear(self, connection: "_Connection", message: object) -> None:
        """A message of the coordinator."""
        self._life.soon(lambda: self._hear(connection, message))

    def _hear(self, connection: "_Connection", message: object) -> None:
        if self._connection is not connection:
            return
        if isinstance(message, LogAck):  # on a stream of its own
            self._owner.logs.acknowledge(message)
        else:
            self._advance(_event(message))


def _event(message: object) -> StreamEvent:
    match message:
        case Welcome():
            return Welcomed(interval=HEARTBEAT_INTERVAL.total_seconds(), lease=LEASE.total_seconds())
        case HeartbeatAck():
            return Acknowledged(sequence=message.sequence)
        case Plan():
            return PlanHeard(plan=message)
        case _:
            return Heard()


class _Connection:
    """One stream, at both ends."""

    def __init__(self, link: AgentLink) -> None:
        self._link = link
        self.stream = link.open_stream(self)
        self.session: Session | None = None
        """The coordinator's end."""

    def arrive_up(self, message: object) -> None:
        self._link.hear_above(self, message)

    def arrive_down(self, message: object) -> None:
        self._link.hear(self, message)

    def ended_above(self) -> None:
        self._link.end_above(self)
