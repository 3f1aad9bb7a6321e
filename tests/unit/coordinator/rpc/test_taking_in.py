"""How many jobs a coordinator takes in at once."""

import asyncio

import grpc
import pytest

from coordinator.rpc.clients.jobs import MAX_SUBMITS
from coordinator.store.records.memory import MemoryStore
from muster import wire
from muster.rpc.v1 import jobs_pb2 as pb
from muster.wire.checks import MAX_JOBS
from tests.builders import spec
from tests.unit.coordinator.engines import engine_on, working
from tests.unit.coordinator.rpc.job_service import Call, RefusedCallError, job_service


async def test_each_of_many_jobs_counts_until_it_is_answered() -> None:
    engine = engine_on(MemoryStore())
    service = job_service(engine)
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
