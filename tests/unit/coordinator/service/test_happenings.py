"""What callers may read of everything that happens, and how they follow it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

import pytest

from coordinator.core.causes import EventCause
from coordinator.core.events import CordonRequested, DeleteRequested, ProjectAdded, StopRequested
from coordinator.engine.engine import Engine
from coordinator.service.archive import StoredPast
from coordinator.service.notifications.happenings import HappeningOperations, HappeningWish
from coordinator.service.stories import EVENTS_AT_ONCE
from coordinator.store.records.memory import MemoryStore
from coordinator.trust.caller import Caller
from muster.domain.errors import PermissionDeniedError
from muster.domain.fleet.access import Access
from muster.domain.ids import JobId
from muster.domain.notifications.cloud_event import cloud_event
from muster.domain.notifications.happening import EventPlace, Happening
from tests.contract.records import node_events
from tests.unit.coordinator.engines import A, connection, engine_on, submission, working
from tests.unit.coordinator.service.callers import Trusted, of_all, person

BOB = EventCause("call k3f-2 nodes.cordon", "bob")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """A fleet of one node, and whoever reads of it."""

    store: MemoryStore
    engine: Engine
    happenings: HappeningOperations


@asynccontextmanager
async def fleet(*, nodes: bool = True) -> AsyncIterator[Fleet]:
    store = MemoryStore()
    engine = engine_on(store)
    async with working(engine):
        if nodes:
            await engine.apply(connection(engine.streams.open()))
        happenings = HappeningOperations(Trusted().operations, engine, StoredPast(store), "f1ee7", pace=0)
        yield Fleet(store=store, engine=engine, happenings=happenings)


async def read(there: Fleet, caller: Caller, after: EventPlace | None = None) -> list[Happening]:
    async with aclosing(there.happenings.all(caller, HappeningWish(after=after))) as pages:
        return [each async for page in pages for each in page.happenings]


def ids(told: Sequence[Happening]) -> list[str]:
    return ["/".join(each.event.id.split("/")[:4]) for each in told]


async def test_operators_of_all_projects_are_told_of_jobs_nodes_and_the_fleet() -> None:
    async with fleet() as there:
        await there.engine.apply(submission("j", project="red"))
        await there.engine.apply(ProjectAdded(name="new", cause=BOB))
        told = await read(there, of_all(Access.OPERATOR))

    assert {each.split("/")[0] for each in ids(told)} == {"job", "node", "fleet"}
    [submitted] = [each for each in told if each.event.id == "job/j/1/submitted"]
    assert submitted.job is not None
    assert (submitted.job.project, submitted.job.name, submitted.fleet) == ("red", "train", "f1ee7")
    assert [each.event.at for each in told] == sorted(each.event.at for each in told)


async def test_members_of_a_project_are_told_of_its_jobs_and_of_nodes_without_accounts() -> None:
    async with fleet() as there:
        await there.engine.apply_all([submission("r", project="red"), submission("b", project="blue")])
        await there.engine.apply(CordonRequested(node=A, cause=BOB))
        await there.engine.apply(ProjectAdded(name="new", cause=BOB))
        told = await read(there, person(red=Access.VIEWER))

    assert {each.job.id for each in told if each.job is not None} == {"r"}
    assert [each.event.kind for each in told if each.job is None] == ["joined", "cordoned"]
    assert not any(each.event.by for each in told)


async def test_whoever_sees_no_project_is_told_nothing() -> None:
    async with fleet() as there:
        with pytest.raises(PermissionDeniedError):
            await read(there, person())


async def test_a_reader_goes_on_where_it_was_whatever_it_was_told_last() -> None:
    async with fleet() as there:
        there.store.commit(node_events("a", EVENTS_AT_ONCE + 1))
        await there.engine.apply(submission("j"))
        everything = await read(there, of_all(Access.OPERATOR))
        rests = [await read(there, of_all(Access.OPERATOR), each.place) for each in everything[-3:]]

    assert len(everything) > EVENTS_AT_ONCE
    assert rests == [everything[-2:], everything[-1:], []]


async def test_a_follower_is_told_where_it_begins_and_then_what_happens() -> None:
    async with fleet() as there:
        await there.engine.apply(submission("j"))
        async with aclosing(there.happenings.all(of_all(Access.OPERATOR), HappeningWish(follow=True))) as pages:
            begun = await anext(pages)
            await there.engine.apply(StopRequested(job=JobId("j")))
            then = await anext(pages)

    assert begun.happenings == ()
    assert [each.event.kind for each in then.happenings][-1] == "stopping"
    assert min(each.event.number for each in then.happenings if each.job is not None) > begun.place.jobs


async def test_a_follower_goes_past_what_it_may_not_see() -> None:
    async with fleet() as there:
        wish = HappeningWish(follow=True)
        async with aclosing(there.happenings.all(person(red=Access.VIEWER), wish)) as pages:
            begun = await anext(pages)
            await there.engine.apply(submission("b", project="blue"))
            then = await anext(pages)

    assert then.happenings == []
    assert then.place.jobs > begun.place.jobs


async def test_events_of_a_deleted_job_are_gone() -> None:
    async with fleet(nodes=False) as there:
        await there.engine.apply_all([submission("j"), submission("k")])
        await there.engine.apply(StopRequested(job=JobId("j")))
        await there.engine.apply(DeleteRequested(job=JobId("j")))
        told = await read(there, of_all(Access.OPERATOR))

    assert {each.job.id for each in told if each.job is not None} == {"k"}


async def test_a_reader_from_a_past_that_was_taken_back_begins_with_what_comes_next() -> None:
    async with fleet() as there:
        wish = HappeningWish(after=EventPlace(10**9, 10**9), follow=True)
        async with aclosing(there.happenings.all(of_all(Access.OPERATOR), wish)) as pages:
            await anext(pages)
            await there.engine.apply(CordonRequested(node=A))
            then = await anext(pages)

    assert [each.event.kind for each in then.happenings] == ["cordoned", "drained"]


async def test_the_same_event_is_the_same_cloud_event_whoever_is_told_of_it() -> None:
    async with fleet() as there:
        await there.engine.apply(submission("j", project="red"))
        callers = (of_all(Access.ADMIN), person(red=Access.VIEWER))
        once, again = [
            next(cloud_event(each) for each in await read(there, caller) if each.job is not None) for caller in callers
        ]

    assert once == again
    assert (once.id, once.type, once.source, once.subject) == (
        "job/j/1/submitted",
        "muster.job.submitted",
        "muster://f1ee7",
        "jobs/j",
    )
