"""Pools: who may set them, which are refused, and what the audit log says; without a transport."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from coordinator.service.queueing.pools import PoolOperations
from coordinator.store.records.memory import MemoryStore
from muster.domain.errors import ConflictError, InvalidJobError, PermissionDeniedError, UnknownNameError
from muster.domain.fleet.access import Access
from muster.domain.fleet.pool import Pool
from tests.unit.coordinator.engines import engine_on, working
from tests.unit.coordinator.service.callers import Trusted, of_all, person

ADMIN, LOOKER = of_all(Access.ADMIN, "root"), person("looker", red=Access.VIEWER)
OPERATOR = of_all(Access.OPERATOR, "op")
FAST = Pool(name="fast", selector={"gpu": "h100"}, longest_run=timedelta(days=3))


@asynccontextmanager
async def operations() -> AsyncIterator[tuple[Trusted, PoolOperations]]:
    trusted, engine = Trusted(), engine_on(MemoryStore())
    async with working(engine):
        yield trusted, PoolOperations(trusted.operations, engine, trusted.registry)


async def test_an_admin_sets_and_removes_pools_and_whoever_has_jobs_sees_them() -> None:
    async with operations() as (trusted, pools):
        await pools.put(ADMIN, FAST, anyway=True)
        seen = [view.pool for view in await pools.list(LOOKER) if view.is_set]
        gone, _ = await pools.remove(ADMIN, "fast")
        left = [view.pool for view in await pools.list(LOOKER) if view.is_set]

    assert (seen, gone, left) == ([FAST], FAST, [])
    assert await trusted.told() == [
        ("root", "pools.put", "fast", "ok, not set -> gpu=h100, longest run 3d"),
        ("root", "pools.remove", "fast", "ok, gpu=h100, longest run 3d -> not set"),
    ]


async def test_nobody_but_admins_of_everything_sets_or_removes_pools() -> None:
    async with operations() as (_, pools):
        for caller in (OPERATOR, LOOKER):
            with pytest.raises(PermissionDeniedError):
                await pools.put(caller, FAST, anyway=True)
            with pytest.raises(PermissionDeniedError):
                await pools.remove(caller, "fast")


async def test_pools_that_cannot_be_meant_are_refused_and_what_was_refused_is_written_down() -> None:
    async with operations() as (trusted, pools):
        with pytest.raises(InvalidJobError, match="pool default: it has the nodes that are in no other"):
            await pools.put(ADMIN, Pool(name="default", selector={"a": "1"}))
        with pytest.raises(ConflictError, match="no node carries the labels of pool fast"):
            await pools.put(ADMIN, FAST)
        with pytest.raises(UnknownNameError, match='there is no pool "fast"; `muster pools` lists them'):
            await pools.remove(ADMIN, "fast")

    assert [entry[:3] for entry in await trusted.told()] == [
        ("root", "pools.put", "default"),
        ("root", "pools.put", "fast"),
        ("root", "pools.remove", "fast"),
    ]
