"""Whatever is asked for together: all of it is accepted, or none."""

import asyncio
from typing import cast

from hypothesis import given

from coordinator.core.cluster.cluster import Cluster
from coordinator.store.records.memory import MemoryStore
from muster import wire
from muster.rpc.v1 import jobs_pb2 as pb
from tests.builders import role, spec
from tests.fuzz.effort import fuzzed_less
from tests.fuzz.messages import anything, damaged, seeds
from tests.unit.coordinator.engines import engine_on, working
from tests.unit.coordinator.rpc.job_service import Call, RefusedCallError, job_service


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
    engine = engine_on(MemoryStore())
    service = job_service(engine)
    async with working(engine):
        try:
            answer = await service.SubmitMany(pb.SubmitManyRequest.FromString(request.SerializeToString()), Call())
        except RefusedCallError:
            answer = pb.SubmitManyResponse()
        known = await engine.read(lambda cluster, _: _jobs(cluster))
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
