"""What nodes have, as their agents tell of it, and orders that agents answer; a book for each kind of thing."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import count, islice
from typing import Generic, Protocol, TypeVar

from muster.domain.errors import UnavailableError
from muster.domain.ids import NodeId

Key = TypeVar("Key")
Thing = TypeVar("Thing")
Order = TypeVar("Order")
Order_contra = TypeVar("Order_contra", contravariant=True)
Answer = TypeVar("Answer")


class OrderLineEndedError(Exception):
    """The stream is over; whether its agent has heard the order is not known."""


class AgentLine(Protocol[Order_contra]):
    """The open stream of one agent."""

    async def send(self, order: Order_contra) -> None:
        """Write an order; raises OrderLineEndedError once the stream is over."""
        ...


class NodeBook(Generic[Key, Thing, Order, Answer]):
    """What nodes have of one kind, and the open streams of their agents. What a node has told stays while it is away.

    In memory, as the agents tell it again when they come.
    """

    def __init__(self, most: int, limit: float, undone: str, unheard: str) -> None:
        """Know nothing yet.

        `most`: things of one node that are remembered; `limit`: seconds in which an agent must have answered.
        `undone` and `unheard` go on after `node NAME`, where it is away and where it does not answer.
        """
        self._most = most
        self._limit = limit
        self._undone = undone
        self._unheard_words = unheard
        self._told: dict[NodeId, dict[Key, Thing]] = {}
        self._lines: dict[NodeId, AgentLine[Order]] = {}
        self._answers: dict[tuple[NodeId, str], asyncio.Future[Answer]] = {}
        self._numbers = count(1)

    # what agents tell

    def begin(self, node: NodeId, things: Mapping[Key, Thing], line: AgentLine[Order]) -> None:
        """A node has a new stream, and these are all that it has."""
        self._told[node] = dict(islice(things.items(), self._most))
        self._lines[node] = line

    def disconnected(self, node: NodeId, line: AgentLine[Order]) -> None:
        """A stream has ended; a newer one of the same node stays."""
        if self._lines.get(node) is line:
            del self._lines[node]
            for (where, _), answer in [*self._answers.items()]:
                if where == node and not answer.done():
                    answer.set_exception(self._unheard(node))

    def change(self, node: NodeId, things: Mapping[Key, Thing], gone: Collection[Key], line: AgentLine[Order]) -> None:
        """Take in what has changed; what an older stream brings counts for nothing."""
        if self._lines.get(node) is line:
            told = self._told[node]
            for key in gone:
                told.pop(key, None)
            for key, thing in things.items():
                if key in told or len(told) < self._most:
                    told[key] = thing

    def hear(self, node: NodeId, number: str, answer: Answer) -> None:
        """Take in what has come of an order; nobody may wait for it any more."""
        waiting = self._answers.get((node, number))
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    # what others ask

    def nodes(self) -> Iterable[NodeId]:
        """Nodes that have any."""
        return [node for node, told in self._told.items() if told]

    def told(self, node: NodeId) -> Mapping[Key, Thing]:
        """All of one node."""
        return self._told.get(node, {})

    def is_connected(self, node: NodeId) -> bool:
        """Whether the agent of a node is there."""
        return node in self._lines

    def forget_all_but(self, nodes: Collection[NodeId]) -> None:
        """Forget nodes that were given up."""
        for node in [node for node in self._told if node not in nodes]:
            del self._told[node]

    async def ask(self, node: NodeId, order: Callable[[str], Order]) -> Answer:
        """Give the agent of a node an order; what has come of it. Raises UnavailableError where it cannot say.

        `order` makes it from the number that names it.
        """
        line = self._lines.get(node)
        if line is None:
            raise UnavailableError(f"node {node} {self._undone}")
        number = str(next(self._numbers))
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._answers[node, number] = answer
        try:
            async with asyncio.timeout(self._limit):
                await line.send(order(number))
                return await answer
        except (TimeoutError, OrderLineEndedError):
            raise self._unheard(node) from None
        finally:
            del self._answers[node, number]

    def _unheard(self, node: NodeId) -> UnavailableError:
        return UnavailableError(f"node {node} {self._unheard_words}")
