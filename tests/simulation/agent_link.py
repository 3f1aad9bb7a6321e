"""The agent's end of its stream: connect, beat, read, and connect again, as `agent/link.py` does."""

from random import Random
from typing import Protocol

from coordinator.core.cluster.cluster import HEARTBEAT_INTERVAL, LEASE
from muster.domain.gangs.plan import Plan
from tests.simulation.agent_logs import AgentLogs
from tests.simulation.coordinator_program import CoordinatorProgram, Session
from tests.simulation.messages import Heartbeat, HeartbeatAck, Hello, LogAck, LogChunk, Welcome
from tests.simulation.network import Channel, Stream
from tests.simulation.truth import SimulatedNode
from tests.simulation.world import SECOND, Life, World

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0
PAUSE_GROWTH = 1.5
LISTENS = 1.0
"""Seconds until a coordinator that listens again is noticed, at most."""
WELCOME_WITHIN = 15.0
"""All as in `agent/link.py`."""


class Owner(Protocol):
    """What the link needs of its agent."""

    @property
    def revision(self) -> int: ...

    @property
    def logs(self) -> AgentLogs: ...

    def contact(self, sent_at: float) -> None: ...

    def disconnected(self) -> None: ...

    def hello(self) -> Hello: ...

    def receive(self, plan: Plan) -> None: ...


class AgentLink:
    """One stream after the other."""

    def __init__(
        self, world: World, life: Life, node: SimulatedNode, coordinator: CoordinatorProgram, owner: Owner
    ) -> None:
        self._world = world
        self._life = life
        self._node = node
        self._coordinator = coordinator
        self._owner = owner
        self._chance: Random = world.chance(f"link {node.name}")
        self._connection: _Connection | None = None
        self._pause = FIRST_PAUSE

    def connect(self) -> None:
        """Open a stream: nothing comes between Hello's content and its place in the stream."""
        if self._connection is not None:
            return
        connection = self._connection = _Connection(self, self._life.clock.seconds)
        connection.stream.up.send(self._owner.hello())
        self._life.after(WELCOME_WITHIN, lambda: None if connection.welcomed else self.lose(connection))

    def send(self, message: object) -> None:
        """Send a message if there is a stream; if there is none, the next Hello tells everything."""
        if self._connection is not None:
            self._connection.stream.up.send(message)

    def _send_log(self, chunk: LogChunk) -> None:
        if self._connection is not None:
            self._connection.stream.up.send(chunk, safely=True)

    def lose(self, connection: "_Connection") -> None:
        """A stream is of no use any more: after a pause comes another."""
        if self._connection is not connection:
            return
        self._world.tell("agent loses its stream", self._node.name)
        connection.stream.leave()
        self._owner.logs.stream_lost()
        self._owner.disconnected()
        self._connection = None
        self._pause = FIRST_PAUSE if connection.welcomed else min(self._pause * PAUSE_GROWTH, LONGEST_PAUSE)
        self._rest(self._pause * self._chance.uniform(0.5, 1.5))

    def _rest(self, pause: float) -> None:
        """Where nobody listens, only until somebody does."""
        timer = self._life.after(pause, self.connect)

        def wake() -> None:
            if self._connection is None and not self._life.over and timer.act is not None:
                timer.cancel()
                self._life.after(LISTENS * self._chance.random(), self.connect)

        if not self._coordinator.up and self._node.up.open and self._node.down.open:
            self._coordinator.on_start.append(wake)

    def reset(self) -> None:
        """The connection breaks in the middle."""
        if self._connection is not None:
            self._connection.stream.reset()

    def die(self, *, silently: bool) -> None:
        """The agent is gone."""
        if self._connection is not None:
            self._connection.stream.leave(silently=silently)
        self._connection = None

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
        connection.heard_at = self._world.at
        match message:
            case Welcome():
                self._owner.contact(connection.sent_at[0])
                self._take_up(connection)
            case HeartbeatAck():
                self._owner.contact(connection.sent_at[message.sequence])
            case Plan():
                self._owner.receive(message)
            case LogAck():
                self._owner.logs.acknowledge(message)

    def _take_up(self, connection: "_Connection") -> None:
        connection.welcomed = True
        self._owner.logs.stream_opened(self._send_log)
        self._life.after(HEARTBEAT_INTERVAL.total_seconds(), lambda: self._beat(connection))
        self._life.after(LEASE.total_seconds(), lambda: self._doubt(connection))

    def _beat(self, connection: "_Connection") -> None:
        if self._connection is connection:
            connection.sent_at.append(self._life.clock.seconds)
            self.send(Heartbeat(sequence=len(connection.sent_at) - 1, plan_revision=self._owner.revision))
            self._life.after(HEARTBEAT_INTERVAL.total_seconds(), lambda: self._beat(connection))

    def _doubt(self, connection: "_Connection") -> None:
        """A coordinator that does not even answer heartbeats for a lease is not there."""
        if self._connection is not connection:
            return
        patience = LEASE.total_seconds() - (self._world.at - connection.heard_at) / SECOND
        if patience <= 0:
            self.lose(connection)
        else:
            self._life.after(patience, lambda: self._doubt(connection))


class _Connection:
    """One stream, and how far it got at both ends."""

    def __init__(self, link: AgentLink, opened_at: float) -> None:
        self._link = link
        self.stream = link.open_stream(self)
        self.session: Session | None = None
        """The coordinator's end."""
        self.welcomed = False
        self.heard_at = 0
        self.sent_at = [opened_at]
        """When Hello and each heartbeat were sent, by the agent's clock."""

    def arrive_up(self, message: object) -> None:
        self._link.hear_above(self, message)

    def arrive_down(self, message: object) -> None:
        self._link.hear(self, message)

    def ended_above(self) -> None:
        self._link.end_above(self)
