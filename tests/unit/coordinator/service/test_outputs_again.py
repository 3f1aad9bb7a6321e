"""Outputs that members have stored again: what is refused, and what the audit log says of it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import NamedTuple, cast

import pytest

from coordinator.service.archive import StoredPast
from coordinator.service.data.left import OutputOperations
from muster.domain.data.outputs import STORING_OUTPUTS, ExecutionOutputs, OutputsStage, RankNotRetried
from muster.domain.errors import ConflictError, PermissionDeniedError, UnknownNameError
from muster.domain.fleet.access import Access
from muster.domain.gangs.plan import Stage
from muster.domain.ids import JobId
from muster.domain.jobs.failure import Exit
from tests.builders import World, spec
from tests.unit.coordinator.engines import engine_on, working
from tests.unit.coordinator.service.callers import Trusted, person
from tests.unit.coordinator.trust.memory_trust import PROJECTS

MEMBER, LOOKER = person("red", red=Access.MEMBER), person("looker", red=Access.VIEWER)
STRANGER = person("blue", blue=Access.MEMBER)
ON_NODE = ExecutionOutputs(stage=OutputsStage.ON_NODE, why="the fleet has no depot")
STORED = ExecutionOutputs(stage=OutputsStage.STORED, tree="ab" * 32, size=90, files=1, bytes=7)


class Coordinator(NamedTuple):
    """One with a job of two ranks, of which rank 1 has outputs on its node alone."""

    trusted: Trusted
    outputs: OutputOperations
    job: JobId


@asynccontextmanager
async def coordinator() -> AsyncIterator[Coordinator]:
    w, trusted = World(("a", 0), projects=PROJECTS), Trusted()
    job = w.running(replace(spec(2), project="red"))
    for rank, left in enumerate((STORED, ON_NODE)):
        w.tell(job, rank, Stage.EXITED, exit=Exit(code=0), outputs=STORING_OUTPUTS)
        w.tell(job, rank, Stage.EXITED, exit=Exit(code=0), log_complete=True, outputs=left)
    engine = engine_on(w.store)
    async with working(engine):
        nobody = cast("StoredPast", None)  # the job is at hand
        yield Coordinator(trusted, OutputOperations(trusted.operations, engine, None, nobody), job)


async def test_a_member_has_those_stored_again_that_are_not_in_the_depot_and_the_audit_log_says_so() -> None:
    async with coordinator() as (trusted, outputs, job):
        retries = [await outputs.retry(MEMBER, job) for _ in range(2)]
        found, _ = await outputs.list(MEMBER, job)
        entries = await trusted.told()

    assert [(each.job, each.attempt, each.ranks, each.refused) for each in retries] == [(job, 1, (1,), ())] * 2
    assert [each.outputs.stage for each in found.ranks] == [OutputsStage.STORED, OutputsStage.STORING_AGAIN]
    assert [each for each in entries if each[1] == "outputs.retry"] == [
        ("red", "outputs.retry", f"{job} attempt 1, 1 rank", "ok")
    ] * 2


async def test_of_ranks_that_are_named_it_is_told_which_cannot_be_stored_again() -> None:
    async with coordinator() as (_, outputs, job):
        retry = await outputs.retry(MEMBER, job, ranks=[0, 1])
        with pytest.raises(
            ConflictError, match=r"has no outputs to store again \(rank 0: its outputs are in the depot"
        ):
            await outputs.retry(MEMBER, job, ranks=[0])

    assert (retry.ranks, retry.refused) == ((1,), (RankNotRetried(rank=0, why="its outputs are in the depot"),))


async def test_who_may_only_look_may_not_and_strangers_hear_nothing_of_the_job() -> None:
    async with coordinator() as (_, outputs, job):
        with pytest.raises(PermissionDeniedError):
            await outputs.retry(LOOKER, job)
        with pytest.raises(UnknownNameError):
            await outputs.retry(STRANGER, job)
        with pytest.raises(UnknownNameError, match="has no attempt 7"):
            await outputs.retry(MEMBER, job, attempt=7)
