"""The pulls of images that go on, or that ended lately, and how far each is on its nodes; in memory alone."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import count

from coordinator.service.data.node_book import AgentLine, NodeBook
from muster.domain.data.kept.pull import ENDED_STEPS, ImagePull, NodePull, PullNews, PullStep, PullView
from muster.domain.errors import ExhaustedError, UnavailableError, UnknownNameError
from muster.domain.ids import NodeId

NODE_PULL_LIMIT = 4 * 3600.0
"""Seconds in which a node must have said that it has an image, or why not; other pulls of it may come first."""

PULLS_AT_ONCE = 64
"""Nodes that pull for one order at the same time; the others come when these have ended."""

MOST_PULLS_KNOWN = 64
"""Pulls that are remembered; the oldest that has ended is forgotten for a new one."""

PULL_ANSWER = 5.0
"""Seconds for which the answer how far a pull is waits for something new."""

_MOST_ORDERS_TOLD = 64
_UNDONE = "is not connected, so it pulls nothing; pull again once it is back"
_UNHEARD = "has not said whether it has the image; `muster images list` shows what it has"

OrderFor = Callable[[str], ImagePull]
"""Makes the order from the number that names it."""


class PullBook(NodeBook[str, PullNews, ImagePull, PullNews]):
    """What agents tell of orders to pull images, by their numbers, and their open streams."""

    def __init__(self, limit: float = NODE_PULL_LIMIT) -> None:
        super().__init__(_MOST_ORDERS_TOLD, limit, _UNDONE, _UNHEARD)
        self._watching: dict[tuple[NodeId, str], Callable[[PullNews], None]] = {}

    def connected(self, node: NodeId, news: Collection[PullNews], line: AgentLine[ImagePull]) -> None:
        """A node has a new stream; it says nothing more of orders that came on an older one."""
        self.begin(node, {each.number: each for each in news}, line)

    def told_news(self, node: NodeId, news: PullNews) -> None:
        """Take in what an agent tells; nobody may wait for it any more."""
        if news.step in ENDED_STEPS:
            self.hear(node, news.number, news)
        elif (watching := self._watching.get((node, news.number))) is not None:
            watching(news)

    async def pull(self, node: NodeId, order_for: OrderFor, watching: Callable[[PullNews], None]) -> PullNews:
        """Have a node pull an image; what came of it. Raises UnavailableError where the node cannot say."""
        numbers: list[str] = []

        def order(number: str) -> ImagePull:
            numbers.append(number)
            self._watching[node, number] = watching
            return order_for(number)

        try:
            return await self.ask(node, order)
        finally:
            for number in numbers:
                del self._watching[node, number]


class _Pull:
    """One pull: what is known of each node, and who waits for more."""

    def __init__(self, id_: str, image: str, nodes: Mapping[NodeId, NodePull]) -> None:
        self.task: asyncio.Task[None] | None = None
        self._view = PullView(id=id_, image=image, revision=1)
        self._nodes = dict(nodes)
        self._changed = asyncio.Event()

    def view(self) -> PullView:
        """The pull as people see it."""
        return replace(self._view, nodes=tuple(self._nodes.values()))

    def set(self, news: NodePull) -> None:
        """Something has changed on a node."""
        self._nodes[NodeId(news.node)] = news
        self._view = replace(self._view, revision=self._view.revision + 1)
        self._changed.set()
        self._changed = asyncio.Event()

    async def later_than(self, revision: int) -> None:
        """Wait until something has changed since this revision, or for as long as an answer may take."""
        try:
            async with asyncio.timeout(PULL_ANSWER):
                while self._view.revision <= revision:
                    await self._changed.wait()
        except TimeoutError:
            pass


class RunningPulls:
    """Has nodes pull images, some at a time, and knows how far they are."""

    def __init__(self, book: PullBook) -> None:
        self._book = book
        self._pulls: dict[str, _Pull] = {}
        self._numbers = count(1)

    def begin(self, image: str, nodes: Sequence[NodePull], order_for: OrderFor) -> PullView:
        """Have the nodes pull that wait; the others are told as they are. Raises ExhaustedError with too many pulls."""
        self._make_room()
        id_ = f"pull-{next(self._numbers)}"
        pull = self._pulls[id_] = _Pull(id_, image, {NodeId(each.node): each for each in nodes})
        waiting = [NodeId(each.node) for each in nodes if each.step is PullStep.WAITING]
        pull.task = asyncio.create_task(self._run(pull, waiting, order_for), name=f"pull of an image: {id_}")
        return pull.view()

    async def seen(self, id_: str, revision: int) -> PullView:
        """A pull, once it is other than at a revision or some seconds have passed. Raises UnknownNameError."""
        pull = self._pulls.get(id_)
        if pull is None:
            raise UnknownNameError(
                f"there is no pull {id_[:80]!r} any more; `muster images list` shows which images nodes have"
            )
        if not pull.view().is_over:
            await pull.later_than(revision)
        return pull.view()

    def close(self) -> None:
        """Wait for no node any more; what nodes have begun to pull goes on there."""
        for pull in self._pulls.values():
            if pull.task is not None:
                pull.task.cancel()

    def _make_room(self) -> None:
        if len(self._pulls) < MOST_PULLS_KNOWN:
            return
        over = next((id_ for id_, pull in self._pulls.items() if pull.view().is_over), None)
        if over is None:
            raise ExhaustedError(f"{MOST_PULLS_KNOWN} pulls of images go on, which is the most; wait for one to end")
        del self._pulls[over]

    async def _run(self, pull: _Pull, nodes: Sequence[NodeId], order_for: OrderFor) -> None:
        room = asyncio.Semaphore(PULLS_AT_ONCE)

        async def on(node: NodeId) -> None:
            async with room:
                pull.set(NodePull(node=node, step=PullStep.PULLING))
                pull.set(await self._pulled(pull, node, order_for))

        async with asyncio.TaskGroup() as tasks:
            for node in nodes:
                tasks.create_task(on(node), name=f"pull of an image on {node}")

    async def _pulled(self, pull: _Pull, node: NodeId, order_for: OrderFor) -> NodePull:
        def watching(news: PullNews) -> None:
            pull.set(NodePull(node=node, step=news.step, doing=news.doing))

        try:
            news = await self._book.pull(node, order_for, watching)
        except UnavailableError as error:
            return NodePull(node=node, step=PullStep.FAILED, why=str(error))
        if news.pulled is None:
            return NodePull(node=node, step=PullStep.FAILED, why=news.why or "the node does not say why")
        there = news.pulled
        return NodePull(node=node, step=news.step, id=there.id, digest=there.digest, bytes=there.bytes)
