"""How many jobs a coordinator takes in at once."""

import asyncio

import pytest

from coordinator.service.submitting import MAX_SUBMITS, Submission
from coordinator.store.records.memory import MemoryStore
from muster.domain.errors import ExhaustedError
from muster.domain.fleet.access import Access
from tests.builders import spec
from tests.unit.coordinator.engines import engine_on, working
from tests.unit.coordinator.service.callers import Trusted, of_all
from tests.unit.coordinator.service.job_operations import job_operations

TOGETHER = 1000
"""Jobs of one call."""


async def test_each_of_many_jobs_counts_until_it_is_answered() -> None:
    engine, ada = engine_on(MemoryStore()), of_all(Access.MEMBER)
    jobs = job_operations(engine, Trusted())
    one = Submission(spec=spec(1), queue_anyway=True)
    async with asyncio.TaskGroup() as tasks:
        waiting = [
            tasks.create_task(jobs.submit_many(ada, [one] * TOGETHER, TOGETHER), name="submits")
            for _ in range(MAX_SUBMITS // TOGETHER)
        ]
        await asyncio.sleep(0)
        for call in (jobs.submit(ada, one), jobs.submit_many(ada, [one], 1)):
            with pytest.raises(ExhaustedError, match="4000 jobs are being taken in at this moment"):
                await call
        async with working(engine):
            await asyncio.wait(waiting)
            assert sum(len(each.result()) for each in waiting) == MAX_SUBMITS
            assert (await jobs.submit(ada, one)).id
