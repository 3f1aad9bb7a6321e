"""What callers may do with what jobs have saved, and what the audit log says; without a transport."""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

import pytest

from coordinator.service.data.checkpoints import CheckpointOperations
from muster.domain.data.checkpoint import CheckpointId, ToldCheckpoints
from muster.domain.data.depot_use import DepotUse
from muster.domain.errors import ConflictError, PermissionDeniedError, UnknownNameError
from muster.domain.fleet.access import Access
from muster.domain.gangs.plan import Stage
from muster.domain.ids import JobId
from tests.builders import World
from tests.unit.coordinator.core.saving import fail, part, save, save_all, saving
from tests.unit.coordinator.engines import engine_on, working
from tests.unit.coordinator.service.callers import Trusted, person
from tests.unit.coordinator.trust.memory_trust import PROJECTS

MEMBER, LOOKER = person("red", red=Access.MEMBER), person("looker", red=Access.VIEWER)
STRANGER = person("blue", blue=Access.MEMBER)


class OpenDepot:
    """A depot that is there, whose tickets say for whom they are."""

    use: DepotUse | None = None
    address, expected = ":7463", True

    def put_ticket(self, *, project: str, account: str, room: int, limit: int, now: datetime) -> str:
        return f"put {project} {account} {room} {limit} {now}"

    def get_ticket(self, tree: str, *, project: str, account: str, now: datetime) -> str:
        del now
        return f"{tree[:8]} of {project} for {account}"

    async def keep(self, trees: Collection[str]) -> frozenset[str]:
        return frozenset(trees)


class Coordinator(NamedTuple):
    """One that goes on with a job of two ranks that has saved."""

    trusted: Trusted
    checkpoints: CheckpointOperations
    job: JobId


@asynccontextmanager
async def coordinator(depot: OpenDepot | None = None) -> AsyncIterator[Coordinator]:
    """Two checkpoints are whole, `b` is what the second attempt began with, and `c` lacks the part of rank 1."""
    w, trusted = World(("a", 0), projects=PROJECTS), Trusted()
    job = w.running(replace(saving(2, keep=3), project="red"))
    save_all(w, job, "a", 1)
    save_all(w, job, "b", 2)
    w.tell(job, 1, Stage.RUNNING, checkpoints=ToldCheckpoints(trouble="c/latest is a link"))
    save(w, job, 0, part("c", 3, "0"))
    fail(w, job)
    w.tell(job, 1, Stage.PREPARING, checkpoints=ToldCheckpoints(trouble="c/latest is a link"))
    engine = engine_on(w.store)
    async with working(engine):
        yield Coordinator(trusted, CheckpointOperations(trusted.operations, engine, depot), job)


async def test_who_may_look_sees_all_of_them_the_newest_first_and_why_one_is_not_stored() -> None:
    async with coordinator() as (_, checkpoints, job):
        found = await checkpoints.list(LOOKER, job)

    assert [(each.name, each.parts, each.needed, each.lacking) for each in found.checkpoints] == [
        ("c", 1, 2, (1,)),
        ("b", 2, 2, ()),
        ("a", 2, 2, ()),
    ]
    assert [(each.whole, each.restored, each.files) for each in found.checkpoints] == [
        (False, False, 1),
        (True, True, 2),
        (True, False, 2),
    ]
    assert [(each.rank, each.why) for each in found.troubles] == [(1, "c/latest is a link")]


async def test_tickets_are_for_who_asks_and_the_audit_log_names_the_checkpoint() -> None:
    async with coordinator(OpenDepot()) as (trusted, checkpoints, job):
        found, following = await checkpoints.parts(LOOKER, job, CheckpointId(0, "a"), ranks=[1])
        entries = await trusted.told()

    tree = part("a", 1, "1").tree
    assert (found.depot, following) == (":7463", 0)
    assert [(each.rank, each.tree, each.ticket) for each in found.parts] == [(1, tree, f"{tree[:8]} of red for looker")]
    assert entries == [("looker", "checkpoints.get", f"{job} a of attempt 1", "ok")]


async def test_without_a_name_it_is_the_newest_whole_one_and_without_a_depot_nothing_opens_it() -> None:
    async with coordinator() as (_, checkpoints, job):
        found, _ = await checkpoints.parts(LOOKER, job, CheckpointId(0, ""))

    assert found.checkpoint.id == CheckpointId(1, "b")
    assert (found.depot, [(each.rank, each.ticket) for each in found.parts]) == ("", [(0, ""), (1, "")])


async def test_a_member_pins_unpins_and_removes_one_and_the_audit_log_says_so() -> None:
    async with coordinator() as (trusted, checkpoints, job):
        wanted = CheckpointId(0, "a")
        told = [await order(MEMBER, job, wanted) for order in (checkpoints.pin, checkpoints.unpin, checkpoints.remove)]
        left = await checkpoints.list(MEMBER, job)
        entries = await trusted.told()

    assert [each.pinned for each in told] == [True, False, False]
    assert [each.name for each in left.checkpoints] == ["c", "b"]
    assert entries == [
        ("red", f"checkpoints.{order}", f"{job} a of attempt 1", "ok") for order in ("pin", "unpin", "remove")
    ]


async def test_who_may_only_look_gives_no_orders_and_strangers_hear_nothing_of_the_job() -> None:
    async with coordinator() as (_, checkpoints, job):
        for order in (checkpoints.pin, checkpoints.unpin, checkpoints.remove):
            with pytest.raises(PermissionDeniedError):
                await order(LOOKER, job, CheckpointId(1, "a"))
        with pytest.raises(UnknownNameError):
            await checkpoints.list(STRANGER, job)
        with pytest.raises(UnknownNameError):
            await checkpoints.parts(STRANGER, job, CheckpointId(0, ""))
        names = [each.name for each in (await checkpoints.list(LOOKER, job)).checkpoints]

    assert names == ["c", "b", "a"]


async def test_what_is_not_there_or_in_use_is_refused_with_the_reason() -> None:
    async with coordinator() as (_, checkpoints, job):
        with pytest.raises(UnknownNameError, match=f"job {job} has no checkpoint a of attempt 2"):
            await checkpoints.pin(MEMBER, job, CheckpointId(2, "a"))
        with pytest.raises(UnknownNameError, match=f"job {job} has no whole checkpoint of attempt 2"):
            await checkpoints.parts(MEMBER, job, CheckpointId(2, ""))
        with pytest.raises(ConflictError, match=f"attempt 2 of job {job} began with b of attempt 1"):
            await checkpoints.remove(MEMBER, job, CheckpointId(0, "b"))
