"""Streams between agents and the coordinator, over paths that may be cut, slow, or worse.

A stream is what gRPC gives: in each direction messages come in order and none is missing, until it breaks; then
a suffix of what was under way is gone. A harsh path also loses, doubles and reorders messages inside a stream.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tests.simulation.world import SECOND, World

END = 0
"""The number of the notice that a channel has ended: it is never cut off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Harshness:
    """How often a message inside a stream is lost, doubled, or overtaken by others."""

    lose: float = 0.0
    double: float = 0.0
    delay: float = 0.0


class Path:
    """One direction between a node and the coordinator."""

    def __init__(self, world: World, chance: Random) -> None:
        self.world = world
        self.chance = chance
        self.harshness = Harshness()
        self.slowness = 0.0
        """Seconds that may be added to the way of a message."""
        self.open = True
        self._held: list[Callable[[], None]] = []

    def latency(self) -> float:
        swift = 0.0002 + 0.003 * self.chance.random()
        return swift + self.slowness * self.chance.random() if self.slowness else swift

    def hold(self, arrive: Callable[[], None]) -> None:
        """Keep what cannot pass now, as TCP does that sends it again and again."""
        self._held.append(arrive)

    def cut(self) -> None:
        self.open = False

    def heal(self) -> None:
        """What was held comes now, in order."""
        self.open, held, self._held = True, self._held, []
        for arrive in held:
            self.world.after(0.0, arrive)


class Channel:
    """One direction of one stream."""

    def __init__(self, path: Path, deliver: Callable[[object], None], ended: Callable[[], None]) -> None:
        self._path = path
        self._deliver = deliver
        self._ended = ended
        self._sent = 0
        self._arrived = 0
        self._latest = 0
        """When the last message comes: none may come before it."""
        self._last_number: int | None = None
        """The number of the last message that still comes; None: the channel is open."""

    def send(self, message: object, *, safely: bool = False) -> None:
        """Put a message on its way; `safely`: nothing but the end of the stream keeps it from coming, in order."""
        if self._last_number is not None:
            return
        self._sent += 1
        number, harsh, chance = self._sent, self._path.harshness, self._path.chance
        if number == 1 or safely or harsh == Harshness():
            self._send(number, message)
            return
        for _ in range(1 + (chance.random() < harsh.double)):
            if chance.random() >= harsh.lose:
                late = chance.random() < harsh.delay
                self._send(number, message, extra=chance.expovariate(1.0) if late else 0.0)

    def close(self, *, silently: bool = False) -> None:
        """The sender is gone: part of what is under way still comes, then the news that it is gone, if any."""
        if self._last_number is not None:
            return
        self._last_number = self._path.chance.randint(self._arrived, self._sent)
        if not silently:
            self._send(END, None)

    def forsake(self) -> None:
        """The receiver is gone: nothing comes any more."""
        self._last_number = -1

    def _send(self, number: int, message: object, extra: float = 0.0) -> None:
        world = self._path.world
        at = world.at + round((self._path.latency() + extra) * SECOND)
        if not extra:
            at = self._latest = max(at, self._latest)
        world.at_time(at, lambda: self._arrive(number, message))

    def _arrive(self, number: int, message: object) -> None:
        if self._last_number is not None and number > self._last_number:
            return
        if not self._path.open:
            self._path.hold(lambda: self._arrive(number, message))
        elif number == END:
            if self._last_number != -1:
                self._ended()
        else:
            self._arrived = max(self._arrived, number)
            self._deliver(message)


@dataclass(slots=True, kw_only=True)
class Stream:
    """Both directions."""

    up: Channel
    down: Channel

    def leave(self, *, silently: bool = False) -> None:
        """The agent's end is gone."""
        self.up.close(silently=silently)
        self.down.forsake()

    def drop(self, *, silently: bool = False) -> None:
        """The coordinator's end is gone."""
        self.down.close(silently=silently)
        self.up.forsake()

    def reset(self) -> None:
        """The connection breaks between the two, and both hear of it."""
        self.up.close()
        self.down.close()
