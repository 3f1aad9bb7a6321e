"""Windows: who may set them, which are refused, and what the audit log says; without a transport."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import pytest

from coordinator.clock import wall_time
from coordinator.service.queueing.windows import WindowOperations
from coordinator.store.records.memory import MemoryStore
from muster.domain.errors import InvalidJobError, PermissionDeniedError, UnknownNameError
from muster.domain.fleet.access import Access
from muster.domain.fleet.window import WINDOW_REASON, Window
from muster.domain.ids import NodeId
from tests.unit.coordinator.engines import engine_on, working
from tests.unit.coordinator.service.callers import Trusted, of_all, person

ADMIN, LOOKER = of_all(Access.ADMIN, "root"), person("looker", red=Access.VIEWER)
OPERATOR = of_all(Access.OPERATOR, "op")
NOW = wall_time()
DISKS = Window(name="disks", begins=NOW, ends=NOW + timedelta(days=1), nodes=(NodeId("gpu-1"),))


@asynccontextmanager
async def operations() -> AsyncIterator[tuple[Trusted, WindowOperations]]:
    trusted, engine = Trusted(), engine_on(MemoryStore())
    async with working(engine):
        yield trusted, WindowOperations(trusted.operations, engine)


async def test_an_admin_sets_and_removes_windows_and_whoever_has_jobs_sees_them() -> None:
    async with operations() as (trusted, windows):
        kept = await windows.put(ADMIN, DISKS)
        seen = await windows.list(LOOKER)
        gone = await windows.remove(ADMIN, "disks")
        left = await windows.list(LOOKER)

    assert (kept, list(seen), gone, list(left)) == (DISKS, [DISKS], DISKS, [])
    assert await trusted.told() == [
        ("root", "windows.put", "disks", "ok"),
        ("root", "windows.remove", "disks", "ok"),
    ]


async def test_nobody_but_admins_of_everything_sets_or_removes_windows() -> None:
    async with operations() as (_, windows):
        for caller in (OPERATOR, LOOKER):
            with pytest.raises(PermissionDeniedError):
                await windows.put(caller, DISKS)
            with pytest.raises(PermissionDeniedError):
                await windows.remove(caller, "disks")


@pytest.mark.parametrize(
    ("window", "why"),
    [
        (replace(DISKS, ends=DISKS.begins), "window disks ends before it begins"),
        (replace(DISKS, nodes=()), "window disks has no nodes; name some, or labels that they carry"),
        (replace(DISKS, reason="x" * (WINDOW_REASON + 1)), "the reason has 501 characters; 500 are kept"),
        (replace(DISKS, notice=timedelta(days=400)), "the notice is longer than 365d"),
    ],
)
async def test_windows_that_cannot_be_meant_are_refused(window: Window, why: str) -> None:
    async with operations() as (_, windows):
        with pytest.raises(InvalidJobError, match=why):
            await windows.put(ADMIN, window)


async def test_a_window_that_is_not_there_is_not_removed() -> None:
    async with operations() as (_, windows):
        with pytest.raises(UnknownNameError, match="there is no window 'disks'; `muster windows` lists them"):
            await windows.remove(ADMIN, "disks")
