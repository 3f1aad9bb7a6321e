"""Operations on quotas: who sees them, who sets them, what is written down of it, and what others see of the queue."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from coordinator.core.events import JobSubmitted, ProjectAdded
from coordinator.engine.engine import Engine
from coordinator.service.known_projects import KnownProjects
from coordinator.service.queueing.quotas import QuotaOperations
from coordinator.store.records.memory import MemoryStore
from muster.domain.errors import ConflictError, InvalidJobError, PermissionDeniedError
from muster.domain.fleet.access import Access
from muster.domain.fleet.quota import QuotaTerms, QuotaUnit, UnitChange, UnitKind, UnitTerms
from muster.domain.ids import JobId
from tests.builders import quota_unit, spec
from tests.unit.coordinator.engines import engine_on, working
from tests.unit.coordinator.service.callers import Trusted, of_all, person

ADMIN = of_all(Access.ADMIN)


@asynccontextmanager
async def fleet(*projects: str) -> AsyncIterator[tuple[Trusted, Engine, QuotaOperations]]:
    engine = engine_on(MemoryStore(), ())
    trusted = Trusted(projects=KnownProjects(engine))
    async with working(engine):
        for name in projects:
            await engine.apply(ProjectAdded(name=name))
        yield trusted, engine, QuotaOperations(trusted.operations, engine, trusted.registry)


def project(name: str, **terms: Any) -> UnitChange:
    before = QuotaUnit(name=name, kind=UnitKind.PROJECT)
    return UnitChange(before=before, after=quota_unit(name, UnitKind.PROJECT, **terms))


async def test_quotas_are_seen_by_those_who_see_the_project_and_set_by_admins_of_all() -> None:
    async with fleet("red", "blue") as (trusted, _, quotas):
        await quotas.set(ADMIN, [project("red", quota=4, weight=2)])
        with pytest.raises(PermissionDeniedError):
            await quotas.set(person(red=Access.ADMIN), [project("red", quota=8)])

        [seen] = await quotas.list(person(red=Access.VIEWER))

        assert seen.unit == quota_unit("red", UnitKind.PROJECT, quota=4, weight=2)
        assert [each.unit.name for each in await quotas.list(ADMIN)] == ["blue", "red"]
        told = await trusted.told()
        assert told[0][1:] == ("quotas.set", "red", "ok, red: quota.gpus not set -> 4 GPUs; red: weight not set -> 2")


async def test_whoever_sees_a_project_sees_its_department_and_no_other() -> None:
    async with fleet("red", "blue") as (_, _, quotas):
        for name in ("research", "sales"):
            await quotas.set(ADMIN, [UnitChange(before=None, after=quota_unit(name, UnitKind.DEPARTMENT))])
        await quotas.set(ADMIN, [project("red", department="research"), project("blue", department="sales")])

        seen = await quotas.list(person(red=Access.VIEWER))

        assert [each.unit.name for each in seen] == ["red", "research"]


async def test_terms_that_mean_nothing_and_names_that_are_none_are_refused() -> None:
    async with fleet("red") as (_, _, quotas):
        with pytest.raises(InvalidJobError, match="red: weight must be from 0 to 1000, not 1001"):
            await quotas.set(ADMIN, [project("red", weight=1001)])
        with pytest.raises(InvalidJobError, match="is no name"):
            await quotas.set(ADMIN, [UnitChange(before=None, after=quota_unit("a*", UnitKind.DEPARTMENT))])
        running = UnitTerms(pools={"h100": QuotaTerms(max_running=1)})
        after = QuotaUnit(name="red", kind=UnitKind.PROJECT, terms=running)
        with pytest.raises(InvalidJobError, match="pool h100: max_running holds in all pools"):
            await quotas.set(ADMIN, [UnitChange(before=None, after=after)])


async def test_two_who_change_the_same_unit_do_not_undo_each_other() -> None:
    async with fleet("red") as (_, _, quotas):
        await quotas.set(ADMIN, [project("red", quota=4)])
        with pytest.raises(ConflictError, match="have changed since they were looked at"):
            await quotas.set(ADMIN, [project("red", weight=2)])


async def test_the_queue_names_no_job_of_a_project_that_one_may_not_look_at() -> None:
    async with fleet("red", "blue") as (_, engine, quotas):
        for name in ("blue", "red", "red"):
            wanted = spec(1, gpus=2, project=name)
            identity = JobId(f"{name}{len((await quotas.queue(ADMIN)).lines)}")
            await engine.apply(JobSubmitted(job=identity, spec=wanted, owner="ann", queue_anyway=True))

        page = await quotas.queue(person(red=Access.VIEWER))

        assert [(line.position, line.job, line.project, line.owner) for line in page.lines] == [
            (1, "", "", ""),
            (2, "red1", "red", "ann"),
            (3, "red2", "red", "ann"),
        ]
        assert [line.job for line in (await quotas.queue(ADMIN, project="blue")).lines] == ["blue0"]
        assert (await quotas.queue(person(red=Access.VIEWER), project="blue")).lines == ()


async def test_the_queue_goes_by_quota_and_says_why_each_waits() -> None:
    async with fleet("red", "blue") as (_, engine, quotas):
        await quotas.set(ADMIN, [project("red", quota=0, limit=1), project("blue", quota=2)])
        for name, gpus in (("red", 2), ("blue", 1), ("blue", 1), ("blue", 1)):
            identity = JobId(f"{name}{len((await quotas.queue(ADMIN)).lines)}")
            wanted = spec(1, gpus=gpus, project=name)
            await engine.apply(JobSubmitted(job=identity, spec=wanted, queue_anyway=True))

        lines = (await quotas.queue(ADMIN)).lines

        assert [(line.job, line.tier, line.reason) for line in lines] == [
            ("blue1", "quota", "room"),
            ("blue2", "quota", "room"),
            ("blue3", "quota", "room"),
            ("red0", "borrowed", "limit"),
        ]
