"""Whatever is asked for together: all of it is accepted, or none."""

import asyncio
from typing import Any, cast

import grpc
from hypothesis import given

from coordinator.core.cluster.cluster import Cluster
from coordinator.rpc.callers import CALLER
from coordinator.rpc.clients.jobs import JobService
from coordinator.service.operations import Operations
from coordinator.service.queueing.job_orders import JobOrders
from coordinator.store.records.memory import MemoryStore
from coordinator.trust.caller import LOCAL
from muster import wire
from muster.rpc.v1 import jobs_pb2 as pb
from tests.builders import role, spec
from tests.fuzz.effort import fuzzed_less
from tests.fuzz.messages import anything, damaged, seeds
from tests.unit.coordinator.engines import engine_on, working
from tests.unit.coordinator.service.callers import Trusted
from tests.unit.coordinator.service.job_operations import job_operations


class RefusedCallError(Exception):
    """The call ended with a status."""


class Call:
    """A call that may be aborted."""

    async def abort(self, status: grpc.StatusCode, text: str, *_: object) -> None:
        raise RefusedCallError(status, text)


class EveryProject:
    """Whatever it is called, it is there."""

    def __contains__(self, name: object) -> bool:
        return True


@fuzzed_less
@given(seed=seeds)
def test_jobs_with_any_content_are_all_accepted_or_none(seed: int) -> None:
    asyncio.run(_submit(cast("pb.SubmitManyRequest", anything(pb.SubmitManyRequest, seed))))


@fuzzed_less
@given(seed=seeds)
def test_jobs_of_ours_with_a_few_changes_are_all_accepted_or_none(seed: int) -> None:
    ours = pb.SubmitRequest(spec=wire.job_spec_to_wire(spec(roles=(role(1), role(2, name="other")))), queue_anyway=True)
    ours.idempotency_key = "key"
    asyncio.run(_submit(cast("pb.SubmitManyRequest", damaged(pb.SubmitManyRequest(jobs=[ours] * 3), seed))))


async def _submit(request: pb.SubmitManyRequest) -> None:
    engine, trusted = engine_on(MemoryStore()), Trusted()
    trusted.operations = Operations(EveryProject(), trusted.audit)
    service = cast("Any", JobService(job_operations(engine, trusted), JobOrders(trusted.operations, engine)))
    CALLER.set(LOCAL)
    async with working(engine):
        try:
            answer = await service.SubmitMany(pb.SubmitManyRequest.FromString(request.SerializeToString()), Call())
        except RefusedCallError:
            answer = pb.SubmitManyResponse()
        known = await engine.query(lambda cluster, _: _jobs(cluster))
    places = [refusal.position for refusal in answer.refusals]
    assert places == sorted(set(places))
    assert all(place < len(request.jobs) for place in places)
    if places or not answer.ids:
        assert (known, list(answer.ids)) == (set(), [])
    else:
        assert known == set(answer.ids) - {""}
        assert len(answer.ids) == len(request.jobs)


def _jobs(cluster: Cluster) -> set[str]:
    return set(cluster.jobs)
