"""What callers may do with the volumes that nodes keep, and what the audit log says; without a transport."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

import pytest

from coordinator.service.data.kept_volumes import MOST_VOLUMES_TOLD, KeptVolumeBook
from coordinator.service.data.node_book import OrderLineEndedError
from coordinator.service.data.volumes import VOLUMES_PAGE, VolumeOperations
from muster.domain.data.volume import (
    KeptVolume,
    KeptVolumeNews,
    RemovalOutcome,
    RemovedVolume,
    Volume,
    VolumeId,
    VolumeKeep,
    VolumeRemoval,
)
from muster.domain.errors import ConflictError, PermissionDeniedError, UnavailableError, UnknownNameError
from muster.domain.fleet.access import Access
from muster.domain.fleet.project_use import ProjectUse, UseKind
from muster.domain.ids import JobId, NodeId
from tests.builders import World, spec
from tests.unit.coordinator.engines import engine_on, working
from tests.unit.coordinator.service.callers import Trusted, person
from tests.unit.coordinator.trust.memory_trust import PROJECTS

MEMBER, LOOKER = person("red", red=Access.MEMBER), person("looker", red=Access.VIEWER)
STRANGER = person("blue", blue=Access.MEMBER)
A, B = NodeId("a"), NodeId("b")
MODELS, SETS, FOREIGN = VolumeId("red", "models"), VolumeId("red", "sets"), VolumeId("blue", "models")
AT = datetime(2026, 5, 1, tzinfo=UTC)


def kept(volume: VolumeId, size: int = 7) -> KeptVolume:
    return KeptVolume(id=volume, bytes=size, used_at=AT)


class Line:
    """The stream of an agent that answers in a way that was said before; without one it says nothing."""

    def __init__(self, book: KeptVolumeBook, node: NodeId, volumes: Sequence[KeptVolume]) -> None:
        self.heard: list[VolumeId] = []
        self.came = asyncio.Event()
        self.outcome: RemovalOutcome | None = RemovalOutcome.REMOVED
        self.why = ""
        self.ended = False
        self._book, self._node = book, node
        book.connected(node, volumes, self)

    async def send(self, order: VolumeRemoval) -> None:
        if self.ended:
            raise OrderLineEndedError
        self.heard.append(order.volume)
        self.came.set()
        if self.outcome is not None:
            if self.outcome is RemovalOutcome.REMOVED:
                self._book.changed(self._node, KeptVolumeNews(gone=(order.volume,)), self)
            self._book.answered(self._node, RemovedVolume(number=order.number, outcome=self.outcome, why=self.why))


class Fleet(NamedTuple):
    """Two nodes of which the first runs a job that uses `models` of red."""

    trusted: Trusted
    volumes: VolumeOperations
    book: KeptVolumeBook
    line: Line
    job: JobId


@asynccontextmanager
async def fleet(limit: float = 60.0) -> AsyncIterator[Fleet]:
    w, trusted, book = World(("a", 0), ("b", 0), projects=PROJECTS), Trusted(), KeptVolumeBook(limit)
    wanted = replace(spec(1), project="red")
    volume = Volume(name="models", size=2**30, keep=VolumeKeep.NODE)
    job = w.running(replace(wanted, roles=(replace(wanted.roles[0], volumes=(volume,)),)))
    assert w.seat(job) == A
    line = Line(book, A, [kept(SETS), kept(MODELS, 9), kept(FOREIGN)])
    Line(book, B, [kept(MODELS)])
    engine = engine_on(w.store)
    async with working(engine):
        yield Fleet(trusted, VolumeOperations(trusted.operations, engine, book), book, line, job)


async def test_each_sees_those_of_its_projects_with_the_jobs_that_use_them() -> None:
    async with fleet() as it:
        found, more = await it.volumes.list(LOOKER)
        foreign, _ = await it.volumes.list(STRANGER)
        there, _ = await it.volumes.list(LOOKER, project="red", node="b")

    assert [(each.node, each.name, each.bytes, each.jobs) for each in found] == [
        ("a", "models", 9, (it.job,)),
        ("a", "sets", 7, ()),
        ("b", "models", 7, ()),
    ]
    assert [(each.node, each.project) for each in foreign] == [("a", "blue")]
    assert ([each.node for each in there], more) == (["b"], False)


async def test_projects_and_nodes_that_one_must_not_know_of_or_that_are_not_there_are_unknown() -> None:
    async with fleet() as it:
        with pytest.raises(UnknownNameError, match="project"):
            await it.volumes.list(LOOKER, project="blue")
        with pytest.raises(UnknownNameError, match="there is no node 'c'"):
            await it.volumes.list(LOOKER, node="c")
        with pytest.raises(UnknownNameError):
            await it.volumes.remove(STRANGER, "a", SETS)
        assert it.line.heard == []


async def test_a_list_comes_in_pages() -> None:
    async with fleet() as it:
        many = [kept(VolumeId("red", f"v{number:04}")) for number in range(VOLUMES_PAGE + 2)]
        Line(it.book, B, many)
        first, more = await it.volumes.list(LOOKER, node="b")
        rest, end = await it.volumes.list(LOOKER, node="b", after=("b", VolumeId("red", first[-1].name)))

    assert (len(first), more, [each.name for each in rest], end) == (VOLUMES_PAGE, True, ["v0500", "v0501"], False)


async def test_a_member_removes_one_that_nobody_uses_and_the_audit_log_says_so() -> None:
    async with fleet() as it:
        removed = await it.volumes.remove(MEMBER, "a", SETS)
        left, _ = await it.volumes.list(MEMBER, node="a")
        entries = await it.trusted.told()

    assert (removed.name, removed.bytes, it.line.heard) == ("sets", 7, [SETS])
    assert [each.name for each in left] == ["models"]
    assert entries == [("red", "volumes.remove", "a red/sets", "ok")]


async def test_one_that_a_job_uses_stays_and_who_may_only_look_removes_none() -> None:
    async with fleet() as it:
        with pytest.raises(ConflictError, match=f"the volume red/models of node a is in use by {it.job}"):
            await it.volumes.remove(MEMBER, "a", MODELS)
        with pytest.raises(PermissionDeniedError):
            await it.volumes.remove(LOOKER, "a", SETS)
        assert it.line.heard == []


@pytest.mark.parametrize(
    ("outcome", "why", "error", "said"),
    [
        (RemovalOutcome.IN_USE, "j1-0", ConflictError, "in use by the executions j1-0"),
        (RemovalOutcome.UNKNOWN, "", UnknownNameError, "node a keeps no volume sets of project red"),
        (RemovalOutcome.FAILED, "No space", UnavailableError, "node a could not remove the volume red/sets: No space"),
    ],
)
async def test_what_the_node_says_is_told(outcome: RemovalOutcome, why: str, error: type[Exception], said: str) -> None:
    async with fleet() as it:
        it.line.outcome, it.line.why = outcome, why
        with pytest.raises(error, match=said):
            await it.volumes.remove(MEMBER, "a", SETS)


async def test_a_node_that_is_away_is_told_nothing_and_what_it_kept_is_listed_as_such() -> None:
    async with fleet() as it:
        it.book.disconnected(A, it.line)
        with pytest.raises(UnavailableError, match="node a is not connected, so nothing was removed"):
            await it.volumes.remove(MEMBER, "a", SETS)
        found, _ = await it.volumes.list(MEMBER)

    assert [(each.node, each.connected) for each in found] == [("a", False), ("a", False), ("b", True)]


async def test_a_node_that_goes_or_says_nothing_leaves_open_whether_it_was_removed() -> None:
    async with fleet() as it:
        it.line.outcome = None
        removing = asyncio.create_task(it.volumes.remove(MEMBER, "a", SETS))
        await it.line.came.wait()
        it.book.disconnected(A, it.line)
        with pytest.raises(UnavailableError, match="has not said whether it removed the volume"):
            await removing
    async with fleet(limit=0.0) as it:
        it.line.outcome = None
        with pytest.raises(UnavailableError, match="has not said whether it removed the volume"):
            await it.volumes.remove(MEMBER, "a", SETS)
        it.line.ended = True
        with pytest.raises(UnavailableError, match="has not said whether it removed the volume"):
            await it.volumes.remove(MEMBER, "a", SETS)


async def test_what_an_older_stream_brings_counts_for_nothing_and_no_node_fills_the_memory() -> None:
    book = KeptVolumeBook()
    older = Line(book, A, [])
    newer = Line(book, A, [kept(SETS)])
    book.disconnected(A, older)
    book.changed(A, KeptVolumeNews(volumes=(kept(MODELS),)), older)
    assert ([each.id for each in book.of(A)], book.is_connected(A)) == ([SETS], True)

    many = tuple(kept(VolumeId("red", f"v{number}")) for number in range(2 * MOST_VOLUMES_TOLD))
    book.changed(A, KeptVolumeNews(volumes=many), newer)
    assert len(book.of(A)) == MOST_VOLUMES_TOLD


async def test_a_project_with_a_kept_volume_is_in_use() -> None:
    async with fleet() as it:
        [use] = it.book.uses_of("blue")
        assert use == ProjectUse(kind=UseKind.VOLUME, count=1, first=("a models",))
        assert use.told("blue") == "1 volume of it is kept by a node (a models): `muster volumes remove a blue models`"
        assert it.book.uses_of("red")[0].told("red").endswith("`muster volumes remove NODE red NAME`")
        assert it.book.uses_of("default") == ()
