"""How many jobs a coordinator takes in at once."""

import asyncio
from typing import Any, cast

import grpc
import pytest

from coordinator.rpc.jobs import MAX_SUBMITS, JobService
from coordinator.rpc.log_merge import LogMerge
from coordinator.store.memory import MemoryStore
from coordinator.trust.secrets import Secrets
from muster import wire
from muster.domain.access import Policy
from muster.rpc.v1 import jobs_pb2 as pb
from muster.wire.checks import MAX_JOBS
from tests.builders import spec
from tests.unit.coordinator.test_engine import engine_on, working


class RefusedCallError(Exception):
    """The call ended with a status."""


class Call:
    """A call that may be aborted."""

    async def abort(self, status: grpc.StatusCode, text: str, *_: object) -> None:
        raise RefusedCallError(status, text)


class NoSecrets:
    """Projects without secrets."""

    def of_project(self, project: str) -> dict[str, object]:
        del project
        return {}


async def test_each_of_many_jobs_counts_until_it_is_answered() -> None:
    engine = engine_on(MemoryStore())
    service: Any = JobService(engine, lambda _: Policy(), cast("LogMerge", None), cast("Secrets", NoSecrets()))
    one = pb.SubmitRequest(spec=wire.job_spec_to_wire(spec(1)), queue_anyway=True)
    many = pb.SubmitManyRequest(jobs=[one] * MAX_JOBS)
    async with asyncio.TaskGroup() as tasks:
        waiting = [
            tasks.create_task(service.SubmitMany(many, Call()), name="submits") for _ in range(MAX_SUBMITS // MAX_JOBS)
        ]
        await asyncio.sleep(0)
        for call, request in ((service.Submit, one), (service.SubmitMany, pb.SubmitManyRequest(jobs=[one]))):
            with pytest.raises(RefusedCallError, match="4000 jobs are being taken in at this moment") as refused:
                await call(request, Call())
            assert refused.value.args[0] is grpc.StatusCode.RESOURCE_EXHAUSTED
        async with working(engine):
            await asyncio.wait(waiting)
            assert sum(len(each.result().ids) for each in waiting) == MAX_SUBMITS
            assert (await service.Submit(one, Call())).job.id
