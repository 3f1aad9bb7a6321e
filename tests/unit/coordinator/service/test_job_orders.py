"""Holds, suspensions and changes of jobs: whom they are allowed, and what the audit log says; without a transport."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest

from coordinator.service.jobs import JobOperations
from coordinator.service.queueing.job_orders import JobOrders
from coordinator.service.submitting import Submission
from coordinator.store.records.memory import MemoryStore
from muster.domain.errors import InvalidJobError, PermissionDeniedError, UnknownNameError
from muster.domain.fleet.access import Access
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.placing.pool_choice import PoolChoice
from muster.domain.jobs.queueing.change import JobChange
from muster.domain.jobs.queueing.waiting import WaitKind
from tests.builders import spec
from tests.unit.coordinator.engines import engine_on, working
from tests.unit.coordinator.service.callers import Trusted, person
from tests.unit.coordinator.service.job_operations import job_operations

RED, BLUE = person("red", red=Access.MEMBER), person("blue", blue=Access.MEMBER)
MATE, LOOKER = person("mate", red=Access.MEMBER), person("looker", red=Access.VIEWER)
OPERATOR = person("op", red=Access.OPERATOR)


class Coordinator(NamedTuple):
    """One without nodes, with a job of a member."""

    trusted: Trusted
    jobs: JobOperations
    orders: JobOrders
    job: str


@asynccontextmanager
async def coordinator(owner: object = RED) -> AsyncIterator[Coordinator]:
    trusted, engine = Trusted(), engine_on(MemoryStore())
    async with working(engine):
        jobs = job_operations(engine, trusted)
        mine = Submission(spec=spec(1, project="red"), queue_anyway=True)
        job = (await jobs.submit(owner, mine)).id  # type: ignore[arg-type]  # a caller, as `person` makes them
        yield Coordinator(trusted, jobs, JobOrders(trusted.operations, engine), job)


async def test_a_member_holds_releases_suspends_and_resumes_a_job_and_the_audit_log_says_so() -> None:
    async with coordinator() as (trusted, _, orders, job):
        phases = [
            (await order(MATE, job)).phase for order in (orders.hold, orders.unhold, orders.suspend, orders.resume)
        ]

    assert phases == [JobPhase.WAITING, JobPhase.QUEUED, JobPhase.WAITING, JobPhase.QUEUED]
    assert (await trusted.told())[1:] == [
        ("mate", "jobs.hold", job, "ok"),
        ("mate", "jobs.unhold", job, "ok"),
        ("mate", "jobs.suspend", job, "ok"),
        ("mate", "jobs.resume", job, "ok"),
    ]


async def test_an_operator_who_holds_the_job_of_somebody_else_alone_releases_it() -> None:
    async with coordinator() as (trusted, _, orders, job):
        held = await orders.hold(OPERATOR, job)
        with pytest.raises(PermissionDeniedError, match="is held by operator op; only an operator releases it"):
            await orders.unhold(RED, job)
        released = await orders.unhold(OPERATOR, job)

    assert [(reason.kind, reason.by) for reason in held.reasons] == [(WaitKind.OPERATOR, "op")]
    assert released.phase is JobPhase.QUEUED
    assert [entry[3] for entry in await trusted.told()][2].startswith(f"job {job} is held by operator op")


async def test_an_operator_holds_a_job_of_his_own_as_its_user() -> None:
    async with coordinator(OPERATOR) as (_, _, orders, job):
        assert [reason.kind for reason in (await orders.hold(OPERATOR, job)).reasons] == [WaitKind.USER]
        assert (await orders.unhold(MATE, job)).phase is JobPhase.QUEUED


async def test_who_may_only_look_gives_no_orders_and_others_do_not_know_the_job() -> None:
    async with coordinator() as (_, _, orders, job):
        for order in (orders.hold, orders.unhold, orders.suspend, orders.resume):
            with pytest.raises(PermissionDeniedError):
                await order(LOOKER, job)
            with pytest.raises(UnknownNameError):
                await order(BLUE, job)
        with pytest.raises(PermissionDeniedError):
            await orders.change(LOOKER, job, JobChange(priority=1))


async def test_a_change_is_there_at_once_and_one_that_breaks_a_rule_is_refused() -> None:
    async with coordinator() as (_, jobs, orders, job):
        changed = await orders.change(MATE, job, JobChange(priority=7))
        with pytest.raises(InvalidJobError, match="priority: must be at most 1000, not 2000"):
            await orders.change(MATE, job, JobChange(priority=2000))
        seen = await jobs.get(RED, job)

    assert changed.spec.priority == seen.spec.priority == 7


async def test_a_job_that_waits_is_sent_to_other_pools_and_given_another_class_by_members_alone() -> None:
    async with coordinator() as (_, jobs, orders, job):
        changed = await orders.change(
            MATE, job, JobChange(job_class=JobClass.SPARE, pools=(PoolChoice(pool="default"),))
        )
        with pytest.raises(PermissionDeniedError):
            await orders.change(LOOKER, job, JobChange(job_class=JobClass.GUARANTEED))
        with pytest.raises(UnknownNameError):
            await orders.change(BLUE, job, JobChange(pools=()))
        with pytest.raises(InvalidJobError, match='there is no pool "defalt"; did you mean "default"'):
            await orders.change(MATE, job, JobChange(pools=(PoolChoice(pool="defalt"),)))
        seen = await jobs.get(RED, job)

    assert changed.spec == seen.spec
    assert (seen.spec.job_class, seen.spec.pools) == (JobClass.SPARE, (PoolChoice(pool="default"),))


async def test_why_says_what_a_job_waits_for_and_how_that_ends() -> None:
    async with coordinator() as (_, jobs, orders, job):
        await orders.hold(MATE, job)
        await orders.suspend(MATE, job)
        told = await jobs.why(RED, job)

    assert told.phase is JobPhase.WAITING
    assert [reason.kind for reason in told.reasons] == [WaitKind.USER, WaitKind.SUSPENDED]
    assert told.summary.startswith("held by mate since ")
    assert told.summary.endswith(f"; `muster unhold {job}` releases it, `muster resume {job}` lets it go on")
