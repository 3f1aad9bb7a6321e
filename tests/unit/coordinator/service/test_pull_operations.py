"""Operations on pulls of images: callers that may, nodes that do, and what is known of them; without a transport."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest

from coordinator.service.data.pull_book import MOST_PULLS_KNOWN, PULLS_AT_ONCE, PullBook, RunningPulls
from coordinator.service.data.pulls import PullOperations
from coordinator.service.secrets import SecretOperations
from muster.domain.data.kept.pull import ImagePull, NodePull, PulledHere, PullNews, PullStep, PullView
from muster.domain.errors import ConflictError, ExhaustedError, PermissionDeniedError, UnknownNameError
from muster.domain.fleet.access import EVERYWHERE, Access
from muster.domain.fleet.features import ALL_FEATURES, PULL_IMAGES
from muster.domain.fleet.secret import SecretKind
from muster.domain.ids import NodeId
from tests.builders import World, inventory
from tests.unit.coordinator.engines import engine_on, working
from tests.unit.coordinator.service.callers import Trusted, person, secrets_in_memory
from tests.unit.coordinator.trust.memory_trust import PROJECTS

OPERATOR, MEMBER = person("ops", **{EVERYWHERE: Access.OPERATOR}), person("red", default=Access.ADMIN)
A, B, C, D = map(NodeId, "abcd")
APP = "ghcr.io/team/app:1"
THERE = PulledHere(id="sha256:app", digest="sha256:dd", bytes=7)


class Line:
    """The stream of an agent, which keeps what it hears, and tells what it is told to."""

    def __init__(self, book: PullBook, node: NodeId) -> None:
        self.heard: asyncio.Queue[ImagePull] = asyncio.Queue()
        self._book, self._node = book, node
        book.connected(node, (), self)

    async def send(self, order: ImagePull) -> None:
        self.heard.put_nowait(order)

    def end(self) -> None:
        self._book.disconnected(self._node, self)

    def tell(self, order: ImagePull, step: PullStep, doing: str = "", pulled: PulledHere | None = None) -> None:
        self._book.told_news(self._node, PullNews(number=order.number, step=step, doing=doing, pulled=pulled))


class Fleet(NamedTuple):
    """Four nodes: the first two pull, the agent of the third is too old, and the fourth has no engine."""

    trusted: Trusted
    pulls: PullOperations
    lines: dict[str, Line]
    secrets: SecretOperations


@asynccontextmanager
async def fleet() -> AsyncIterator[Fleet]:
    w, trusted, book = World(("a", 0), ("b", 0)), Trusted(), PullBook()
    w.connect("c", inventory("c"), features=ALL_FEATURES - {PULL_IMAGES})
    w.connect("d", inventory("d", runtimes=()))
    engine, running, secrets = engine_on(w.store), RunningPulls(book), secrets_in_memory(PROJECTS)
    pulls = PullOperations(trusted.operations, engine, running, secrets, trusted.audit)
    lines = {str(node): Line(book, node) for node in (A, B)}
    async with working(engine):
        yield Fleet(trusted, pulls, lines, SecretOperations(trusted.operations, secrets))
        running.close()


async def over(pulls: PullOperations, pull: PullView) -> PullView:
    """A pull, once nothing more comes of it."""
    while not pull.is_over:
        pull = await pulls.pulled(OPERATOR, pull.id, pull.revision)
    return pull


async def test_nodes_pull_and_what_each_has_is_known_also_of_those_that_cannot() -> None:
    async with fleet() as it:
        pull = await it.pulls.pull(OPERATOR, APP)
        assert [(each.node, each.step) for each in pull.nodes] == [
            ("a", PullStep.WAITING),
            ("b", PullStep.WAITING),
            ("c", PullStep.FAILED),
        ]
        orders = {name: await line.heard.get() for name, line in it.lines.items()}
        it.lines["a"].tell(orders["a"], PullStep.PULLING, "37 %")
        seen = await it.pulls.pulled(OPERATOR, pull.id, 0)
        it.lines["a"].tell(orders["a"], PullStep.PULLED, pulled=THERE)
        it.lines["b"].end()
        ended = await over(it.pulls, pull)
        entries = await it.trusted.told()

    assert seen.nodes[0] == NodePull(node="a", step=PullStep.PULLING, doing="37 %")
    assert ended.nodes[0] == NodePull(node="a", step=PullStep.PULLED, id=THERE.id, digest=THERE.digest, bytes=7)
    assert ended.nodes[1].why.startswith("node b has not said whether it has the image")
    assert ended.nodes[2].why == "its agent is too old to pull images on an order; upgrade it"
    assert entries == [("ops", "images.pull", f"{APP} all nodes", "ok")]


async def test_the_credentials_of_the_project_go_along_and_the_audit_log_says_so() -> None:
    async with fleet() as it:
        values = {"server": b"ghcr.io", "username": b"robot", "password": b"pw"}
        await it.secrets.set(OPERATOR, "red", "ghcr", values, kind=SecretKind.REGISTRY)
        await it.pulls.pull(OPERATOR, APP, nodes=["a"], project="red")
        order = await it.lines["a"].heard.get()
        await it.pulls.pull(OPERATOR, APP, nodes=["b"])
        other = await it.lines["b"].heard.get()
        entries = await it.trusted.told()
        with pytest.raises(UnknownNameError, match="project"):
            await it.pulls.pull(OPERATOR, APP, project="none")

    assert (order.username, order.password, other.username) == ("robot", "pw", "")
    assert ("ops", "secrets.deliver", "red/ghcr", f"ok, given to nodes for {APP}") in entries


async def test_who_is_meant_must_be_there_and_have_an_engine() -> None:
    async with fleet() as it:
        with pytest.raises(UnknownNameError, match="there is no node 'x'"):
            await it.pulls.pull(OPERATOR, APP, nodes=["x"])
        with pytest.raises(UnknownNameError, match="there is no pool"):
            await it.pulls.pull(OPERATOR, APP, pool="x")
        named = await it.pulls.pull(OPERATOR, APP, nodes=["d", "d"])
        with pytest.raises(UnknownNameError, match="there is no pull 'x' any more"):
            await it.pulls.pulled(OPERATOR, "x", 0)
        with pytest.raises(PermissionDeniedError):
            await it.pulls.pull(MEMBER, APP)
        with pytest.raises(PermissionDeniedError):
            await it.pulls.pulled(MEMBER, named.id, 0)

    assert [each.why for each in named.nodes] == [
        "it has no container engine that works; `muster nodes` says what it has"
    ]


async def test_a_fleet_without_engines_has_nobody_to_pull() -> None:
    w, trusted = World(), Trusted()
    w.connect("d", inventory("d", runtimes=()))
    engine, secrets = engine_on(w.store), secrets_in_memory(PROJECTS)
    pulls = PullOperations(trusted.operations, engine, RunningPulls(PullBook()), secrets, trusted.audit)
    async with working(engine):
        with pytest.raises(ConflictError, match="no node is meant that has a container engine"):
            await pulls.pull(OPERATOR, APP)


async def test_only_so_many_nodes_pull_at_the_same_time() -> None:
    book = PullBook()
    running = RunningPulls(book)
    names = [f"n{number:03}" for number in range(PULLS_AT_ONCE + 1)]
    lines = {name: Line(book, NodeId(name)) for name in names}
    pull = running.begin(
        APP, [NodePull(node=name) for name in names], lambda number: ImagePull(number=number, image=APP)
    )
    first = await lines[names[0]].heard.get()
    for name in names[1:-1]:
        await lines[name].heard.get()
    before = await running.seen(pull.id, 0)
    lines[names[0]].tell(first, PullStep.PULLED, pulled=THERE)
    await lines[names[-1]].heard.get()
    running.close()

    assert [each.node for each in before.nodes if each.step is PullStep.WAITING] == [names[-1]]


async def test_pulls_that_have_ended_are_forgotten_for_new_ones_and_others_are_not() -> None:
    running, failed = RunningPulls(PullBook()), [NodePull(node="a", step=PullStep.FAILED)]

    def begin(nodes: list[NodePull]) -> PullView:
        return running.begin(APP, nodes, lambda number: ImagePull(number=number, image=APP))

    first = begin(failed)
    for _ in range(MOST_PULLS_KNOWN):
        begin([NodePull(node="b")])
    with pytest.raises(UnknownNameError):
        await running.seen(first.id, 0)
    with pytest.raises(ExhaustedError, match="64 pulls of images go on"):
        begin(failed)
    running.close()
