"""Heartbeats: those of all streams that come within a moment are taken in together, and each is acknowledged by itself.

A turn of the engine costs more than what one of them changes, and so does waiting for one.
"5,000 nodes' heartbeats (10 s): coordinator CPU, share of one core" of `make bench ONLY=scale` pays for this.
"""

import asyncio
from dataclasses import dataclass

from coordinator.core.answers import Answer, Refused
from coordinator.core.events import HeartbeatReceived
from coordinator.engine.agent_streams import AgentStream
from coordinator.engine.engine import Engine
from coordinator.rpc.agents.downlink import Downlink
from muster.domain.errors import MusterError
from muster.rpc.v1 import agents_pb2 as pb

MOMENT = 0.1
"""Seconds of heartbeats that are taken in together."""


class Heartbeats:
    """Heartbeats of all streams."""

    def __init__(self, engine: Engine, moment: float = MOMENT) -> None:
        self._engine = engine
        self._moment = moment
        self._taken: list[_Beat] = []
        """Heartbeats of the moment that has begun."""
        self._rounds: set[asyncio.Task[None]] = set()

    def take(self, beat: "_Beat") -> None:
        """Have one counted with the others."""
        if not self._taken:
            asyncio.get_running_loop().call_later(self._moment, self._begin_round)
        self._taken.append(beat)

    def _begin_round(self) -> None:
        beats, self._taken = self._taken, []
        # An agent that does not read holds up its own round and no other.
        task = asyncio.get_running_loop().create_task(self._count(beats), name="heartbeats")
        self._rounds.add(task)
        task.add_done_callback(self._rounds.discard)

    async def _count(self, beats: "list[_Beat]") -> None:
        try:
            answers = await self._engine.apply_all([beat.event for beat in beats])
        except MusterError:
            for beat in beats:
                beat.pulse.give_up()
        else:
            await asyncio.gather(*map(_answer, beats, answers))


class Pulse:
    """The heartbeats of one stream. Nothing else waits for them; a second one waits for the first."""

    def __init__(self, heartbeats: Heartbeats, session: AgentStream, down: Downlink) -> None:
        self._heartbeats = heartbeats
        self._session = session
        self._down = down
        self._under_way = asyncio.Lock()

    async def take(self, event: HeartbeatReceived, sequence: int) -> None:
        """Have one counted and acknowledged."""
        await self._under_way.acquire()
        self._heartbeats.take(_Beat(event, sequence, self))

    async def acknowledge(self, sequence: int) -> None:
        """Say that one counts."""
        try:
            await self._down.send(pb.CoordinatorMessage(heartbeat_ack=pb.HeartbeatAck(sequence=sequence)))
        except Exception:  # noqa: BLE001 - whatever it is, nothing can be said on this stream any more
            self.give_up()
        else:
            self.go_on()

    def go_on(self) -> None:
        """The next one may come."""
        self._under_way.release()

    def give_up(self) -> None:
        """End the stream; the agent opens another one."""
        self._session.closed.set()
        self.go_on()


@dataclass(frozen=True, slots=True)
class _Beat:
    """A heartbeat that waits for its answer."""

    event: HeartbeatReceived
    sequence: int
    pulse: Pulse


async def _answer(beat: _Beat, answer: Answer) -> None:
    # Acknowledged once it counts, and only then: the agent's fence relies on it.
    if isinstance(answer, Refused):
        beat.pulse.go_on()
    else:
        await beat.pulse.acknowledge(beat.sequence)
