"""What callers may do with the images that agents have pulled, and what the audit log says; without a transport."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

import pytest

from coordinator.service.data.images import IMAGES_PAGE, ImageOperations
from coordinator.service.data.kept_images import KeptImageBook
from coordinator.views.images import jobs_with
from muster.domain.data.kept.image import (
    ClearedImages,
    ClearOutcome,
    ImageClearance,
    ImageFate,
    ImageNews,
    ToldImage,
)
from muster.domain.errors import ConflictError, PermissionDeniedError, UnavailableError, UnknownNameError
from muster.domain.fleet.access import EVERYWHERE, Access
from muster.domain.fleet.features import ALL_FEATURES, CLEAR_IMAGES
from muster.domain.ids import JobId, NodeId
from muster.domain.jobs.image import FoundImage
from tests.builders import World, spec
from tests.unit.coordinator.engines import engine_on, working
from tests.unit.coordinator.service.callers import Trusted, person

OPERATOR, MEMBER = person("ops", **{EVERYWHERE: Access.OPERATOR}), person("red", default=Access.ADMIN)
A, B = NodeId("a"), NodeId("b")
APP, OTHER = "team/app:1", "team/other:1"
DIGEST = f"sha256:{'d' * 64}"
AT = datetime(2026, 5, 1, tzinfo=UTC)


def told(id_: str, *names: str) -> ToldImage:
    return ToldImage(id=id_, names=names, bytes=7, used_at=AT)


class Line:
    """The stream of an agent that removes whatever it is told to."""

    def __init__(self, book: KeptImageBook, node: NodeId, images: Sequence[ToldImage]) -> None:
        self.heard: list[tuple[str, ...]] = []
        self._book, self._node = book, node
        book.connected(node, images, self)

    async def send(self, order: ImageClearance) -> None:
        self.heard.append(order.images)
        self._book.changed(self._node, ImageNews(gone=("other",)), self)
        fates = (ImageFate(image=OTHER, outcome=ClearOutcome.REMOVED, bytes=7),)
        self._book.answered(self._node, ClearedImages(number=order.number, fates=fates))


class Fleet(NamedTuple):
    """Two nodes of which the first runs a job with an image; the agent of the second is of an older version."""

    trusted: Trusted
    images: ImageOperations
    book: KeptImageBook
    line: Line
    job: JobId


@asynccontextmanager
async def fleet() -> AsyncIterator[Fleet]:
    w, trusted, book = World(("a", 0), ("b", 0)), Trusted(), KeptImageBook()
    wanted = spec(1)
    job = w.running(replace(wanted, roles=(replace(wanted.roles[0], image=APP),)))
    assert w.seat(job) == A
    w.connect("b", features=ALL_FEATURES - {CLEAR_IMAGES})
    line = Line(book, A, [told("app", "docker.io/team/app:1"), told("other", OTHER)])
    Line(book, B, [told("app", APP)])
    engine = engine_on(w.store)
    async with working(engine):
        yield Fleet(trusted, ImageOperations(trusted.operations, engine, book), book, line, job)


async def test_operators_see_them_with_the_jobs_that_use_them() -> None:
    async with fleet() as it:
        found, more = await it.images.list(OPERATOR)
        there, _ = await it.images.list(OPERATOR, node="b")
        with pytest.raises(UnknownNameError, match="there is no node 'c'"):
            await it.images.list(OPERATOR, node="c")

    assert [(each.node, each.id, each.jobs) for each in found] == [
        ("a", "app", (it.job,)),
        ("a", "other", ()),
        ("b", "app", ()),
    ]
    assert ([each.node for each in there], more) == (["b"], False)


async def test_who_is_no_operator_of_the_fleet_neither_sees_nor_clears_any() -> None:
    async with fleet() as it:
        with pytest.raises(PermissionDeniedError):
            await it.images.list(MEMBER)
        with pytest.raises(PermissionDeniedError):
            await it.images.clear(MEMBER, "a", ())
        assert it.line.heard == []


async def test_a_list_of_images_comes_in_pages() -> None:
    async with fleet() as it:
        Line(it.book, B, [told(f"i{number:04}", APP) for number in range(IMAGES_PAGE + 2)])
        Line(it.book, A, [told(f"i{number:04}", APP) for number in range(IMAGES_PAGE - 1)])
        first, more = await it.images.list(OPERATOR)
        rest, end = await it.images.list(OPERATOR, after=(first[-1].node, first[-1].id))

    assert (len(first), first[-1].node, first[-1].id, more) == (IMAGES_PAGE, "b", "i0000", True)
    assert (len(rest), rest[0].id, end) == (IMAGES_PAGE, "i0001", True)


async def test_an_operator_clears_some_and_the_audit_log_says_so() -> None:
    async with fleet() as it:
        fates = await it.images.clear(OPERATOR, "a", (OTHER,))
        left, _ = await it.images.list(OPERATOR, node="a")
        entries = await it.trusted.told()

    assert [(each.image, each.outcome) for each in fates] == [(OTHER, ClearOutcome.REMOVED)]
    assert ([each.id for each in left], it.line.heard) == (["app"], [(OTHER,)])
    assert [entry[1:] for entry in entries] == [("images.clear", f"a {OTHER}", "ok")]


async def test_a_node_that_is_away_or_whose_agent_is_too_old_is_told_nothing() -> None:
    async with fleet() as it:
        it.book.disconnected(A, it.line)
        with pytest.raises(UnavailableError, match="node a is not connected, so no image was removed"):
            await it.images.clear(OPERATOR, "a", ())
        with pytest.raises(ConflictError, match="the agent of node b is too old to clear images"):
            await it.images.clear(OPERATOR, "b", ())
        with pytest.raises(UnknownNameError, match="there is no node 'c'"):
            await it.images.clear(OPERATOR, "c", ())
        found, _ = await it.images.list(OPERATOR)

    assert [each.connected for each in found] == [False, False, True]


@pytest.mark.parametrize(
    ("found", "image", "used"),
    [
        (FoundImage(image=APP, digest=DIGEST), told("x", APP), False),
        (FoundImage(image=APP, digest=DIGEST), told("x", f"docker.io/team/app@{DIGEST}"), True),
        (FoundImage(image=APP, digest=DIGEST, id="x"), told("x", APP), True),
        (FoundImage(image=OTHER, digest=DIGEST), told("x", APP), True),
    ],
)
def test_what_a_name_was_found_to_mean_says_which_image_a_job_uses(
    found: FoundImage, image: ToldImage, used: bool
) -> None:
    w, wanted = World(("a", 0)), spec(1)
    job = w.running(replace(wanted, roles=(replace(wanted.roles[0], image=APP),)))
    cluster = w.cluster
    cluster.put(replace(cluster.jobs[job], images=(found,)))

    assert jobs_with(cluster, A, image) == ([job] if used else [])
