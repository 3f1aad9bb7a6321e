"""What callers may do with jobs; no transport is involved."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from coordinator.service.causes import NoNodeError, TakenError
from coordinator.service.jobs import JobFilter, JobOperations
from coordinator.service.submitting import Submission, UnreadableSubmission
from coordinator.service.watching.logs import LogWish
from coordinator.store.records.memory import MemoryStore
from muster.domain.errors import InvalidJobError, JobsRefusedError, PermissionDeniedError, UnknownNameError
from muster.domain.fleet.access import Access
from muster.domain.ids import JobId
from muster.domain.jobs.job import Mount
from muster.domain.jobs.lifecycle import JobPhase
from tests.builders import spec
from tests.unit.coordinator.engines import StoreThatWaits, connection, engine_on, working
from tests.unit.coordinator.service.callers import Trusted, of_all, person
from tests.unit.coordinator.service.job_operations import job_operations

RED, BLUE = person("red", red=Access.MEMBER), person("blue", blue=Access.MEMBER)


def job(project: str = "red", size: int = 1, key: str = "", *, dry_run: bool = False, gpus: int = 0) -> Submission:
    """A job that may wait for ever."""
    return Submission(spec=spec(size, project=project, gpus=gpus), key=key, queue_anyway=not gpus, dry_run=dry_run)


@asynccontextmanager
async def coordinator() -> AsyncIterator[tuple[Trusted, JobOperations]]:
    """One without nodes."""
    trusted, engine = Trusted(), engine_on(MemoryStore())
    async with working(engine):
        yield trusted, job_operations(engine, trusted)


async def test_a_job_is_submitted_looked_at_stopped_and_forgotten() -> None:
    async with coordinator() as (trusted, jobs):
        submitted = await jobs.submit(RED, job())
        seen = await jobs.get(RED, submitted.id[:6])
        stopped = await jobs.stop(RED, submitted.spec.name)
        gone = await jobs.delete(RED, submitted.id)
        page = await jobs.list(RED, JobFilter())

    assert (submitted.phase, seen.id, stopped.phase) == (JobPhase.QUEUED, submitted.id, JobPhase.STOPPED)
    assert (gone, page.jobs) == (submitted.id, [])
    assert await trusted.told() == [
        ("red", "jobs.submit", submitted.id, "ok"),
        ("red", "jobs.stop", submitted.id, "ok"),
        ("red", "jobs.delete", submitted.id, "ok"),
    ]


async def test_jobs_of_another_project_are_as_if_they_were_not_there() -> None:
    async with coordinator() as (trusted, jobs):
        theirs = (await jobs.submit(BLUE, job("blue"))).id
        for ask in (
            jobs.get(RED, theirs),
            jobs.stop(RED, theirs),
            jobs.delete(RED, theirs),
            jobs.why(RED, theirs),
            anext(jobs.watch(RED, theirs)),
            anext(jobs.logs(RED, LogWish(job=theirs))),
        ):
            with pytest.raises(UnknownNameError, match=f"there is no job '{theirs}'"):
                await ask
        page = await jobs.list(RED, JobFilter())

    assert page.jobs == []
    refused = {(what, target, result) for who, what, target, result in await trusted.told() if who == "red"}
    looks = ("get", "stop", "delete", "why", "watch", "logs")
    assert refused == {(f"jobs.{each}", theirs, "not found among what the caller may see") for each in looks}


async def test_a_job_that_is_stopped_by_somebody_who_goes_away_meanwhile_has_an_entry_in_the_audit_log() -> None:
    store, trusted = StoreThatWaits(), Trusted()
    store.let_go.set()
    engine = engine_on(store)
    jobs = job_operations(engine, trusted)
    async with working(engine):
        id_ = (await jobs.submit(RED, job())).id
        store.entered.clear()
        store.let_go.clear()
        stopping = asyncio.create_task(jobs.stop(RED, id_))
        await asyncio.to_thread(store.entered.wait, 60)
        stopping.cancel()
        await asyncio.wait([stopping])
        store.let_go.set()

        assert (await jobs.get(RED, id_)).phase is JobPhase.STOPPED
        cancelled = "cancelled: its caller went away, and it may have been carried out"
        assert (await trusted.told())[1:] == [("red", "jobs.stop", id_, cancelled)]


async def test_who_may_only_look_stops_nothing() -> None:
    async with coordinator() as (trusted, jobs):
        id_ = (await jobs.submit(RED, job())).id
        viewer = person("viewer", red=Access.VIEWER)
        for order in (jobs.stop(viewer, id_), jobs.delete(viewer, id_), jobs.submit(viewer, job())):
            with pytest.raises(PermissionDeniedError, match="needs member access to the project"):
                await order
        seen = await jobs.get(viewer, id_)

    assert seen.phase is JobPhase.QUEUED
    assert (await trusted.told())[1:] == [
        ("viewer", "jobs.stop", id_, "needs member (project)"),
        ("viewer", "jobs.delete", id_, "needs member (project)"),
        ("viewer", "jobs.submit", "train", "needs member (project)"),
    ]


async def test_a_key_answers_with_the_job_of_before_and_never_with_that_of_somebody_else() -> None:
    both = person("both", red=Access.MEMBER, blue=Access.MEMBER)
    async with coordinator() as (_, jobs):
        first = await jobs.submit(RED, job(key="k"))
        again = await jobs.submit(RED, job(key="k"))
        other = await jobs.submit(both, job(key="k"))
        with pytest.raises(TakenError):
            await jobs.submit(RED, job(size=2, key="k"))

    assert first.id == again.id != other.id


async def test_a_dry_run_leaves_no_job_and_is_written_down_by_name() -> None:
    async with coordinator() as (trusted, jobs):
        tried = await jobs.submit(RED, job(dry_run=True))
        page = await jobs.list(RED, JobFilter())

    assert (tried.id, page.jobs) == ("", [])
    assert await trusted.told() == [("red", "jobs.submit", "train", "ok")]


async def test_a_job_that_no_node_could_run_is_refused_with_a_reason_for_each() -> None:
    trusted, engine = Trusted(), engine_on(MemoryStore())
    async with working(engine):
        await engine.apply(connection(engine.streams.open()))
        with pytest.raises(NoNodeError, match="no node could ever run it") as refused:
            await job_operations(engine, trusted).submit(RED, job(gpus=9))

    assert [(each.node, each.reason) for each in refused.value.reasons] == [("a", "needs 9 GPUs, 1 is free")]
    assert await trusted.told() == [("red", "jobs.submit", "train", "failed_precondition")]


async def test_what_breaks_a_rule_is_refused_whichever_way_it_came() -> None:
    broken = replace(job(), spec=spec(1, project="red", priority=10_000))
    async with coordinator() as (trusted, jobs):
        with pytest.raises(InvalidJobError, match="priority"):
            await jobs.submit(RED, broken)

    assert await trusted.told() == [("red", "jobs.submit", "train", "invalid_argument")]


async def test_a_job_that_asks_for_more_than_its_project_is_opened_for_is_a_refusal() -> None:
    plain = spec(1, project="red")
    role = replace(plain.roles[0], image="i", mounts=(Mount(source="/data", target="/data"),))
    wanted = replace(plain, roles=(role,))
    async with coordinator() as (trusted, jobs):
        with pytest.raises(PermissionDeniedError, match="not opened for what the job asks for"):
            await jobs.submit(RED, replace(job(), spec=wanted))

    ((_, what, target, result),) = await trusted.told()
    assert (what, target) == ("jobs.submit", "train")
    assert result.startswith("project red is not opened")


async def test_of_many_jobs_each_has_an_entry() -> None:
    async with coordinator() as (trusted, jobs):
        ids = await jobs.submit_many(RED, [job(), job(dry_run=True), job()], 3)

    assert ids[1] == ""
    assert await trusted.told() == [("red", "jobs.submit", each or "train", "ok") for each in ids]


async def test_as_soon_as_one_of_many_is_refused_none_is_taken_and_each_refusal_is_told() -> None:
    unreadable = UnreadableSubmission(name="odd", error=InvalidJobError("is odd"))
    broken = replace(job(), spec=spec(1, project="red", priority=10_000))
    async with coordinator() as (trusted, jobs):
        with pytest.raises(JobsRefusedError) as refused:
            await jobs.submit_many(RED, [job(), unreadable, broken], 3)
        page = await jobs.list(RED, JobFilter())

    assert page.jobs == []
    assert list(refused.value.refused) == [1, 2]
    assert await trusted.told() == [
        ("red", "jobs.submit", "odd", "invalid_argument"),
        ("red", "jobs.submit", "train", "invalid_argument"),
    ]


async def test_one_job_of_many_in_a_project_of_others_refuses_the_whole_call() -> None:
    async with coordinator() as (trusted, jobs):
        with pytest.raises(UnknownNameError, match="there is no project 'blue'"):
            await jobs.submit_many(RED, [job(), job("blue")], 2)

    assert await trusted.told() == [("red", "jobs.submit", "2 jobs", "not found among what the caller may see")]


async def test_lists_are_in_pages_and_by_phase() -> None:
    async with coordinator() as (_, jobs):
        ids = [(await jobs.submit(RED, job())).id for _ in range(3)]
        await jobs.stop(RED, ids[1])
        first = await jobs.list(RED, JobFilter(), size=2)
        second = await jobs.list(RED, JobFilter(), page=first.next_page, size=2)
        queued = await jobs.list(RED, JobFilter(phases={JobPhase.QUEUED}))
        named = await jobs.list(RED, JobFilter(name_contains="nothing"))

    assert [[each.id for each in page.jobs] for page in (first, second)] == [[ids[2], ids[1]], [ids[0]]]
    assert (second.next_page, named.jobs) == ("", [])
    assert [each.id for each in queued.jobs] == [ids[2], ids[0]]


async def test_a_job_has_its_caller_as_owner_and_lists_are_narrowed_by_it() -> None:
    other = person("other", red=Access.MEMBER)
    async with coordinator() as (_, jobs):
        mine, theirs = await jobs.submit(RED, job()), await jobs.submit(other, job())
        own = await jobs.list(RED, JobFilter(mine=True))
        named = await jobs.list(RED, JobFilter(owners=frozenset({"other"})))
        elsewhere = await jobs.list(RED, JobFilter(projects=frozenset({"blue"})))

    assert (mine.owner, theirs.owner) == ("red", "other")
    assert [[each.id for each in page.jobs] for page in (own, named, elsewhere)] == [[mine.id], [theirs.id], []]


async def test_who_waits_behind_a_job_of_another_project_does_not_learn_which() -> None:
    async with coordinator() as (_, jobs):
        await jobs.submit(BLUE, job("blue"))
        mine = (await jobs.submit(RED, job())).id
        told, known = await jobs.why(RED, mine), await jobs.why(of_all(Access.VIEWER), mine)

    assert told.summary.endswith("the next one is a job of another project")
    assert "the next one is train (" in known.summary


async def test_a_watcher_sees_the_job_end() -> None:
    async with coordinator() as (_, jobs):
        id_ = (await jobs.submit(RED, job())).id
        views = jobs.watch(RED, id_)
        before = await anext(views)
        await jobs.stop(RED, id_)
        phases = [view.phase async for view in views]

    assert (before.id, before.phase, phases[-1]) == (JobId(id_), JobPhase.QUEUED, JobPhase.STOPPED)
