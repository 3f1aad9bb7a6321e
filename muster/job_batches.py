"""Many jobs submitted with few calls, each of which is accepted as a whole or not at all."""

import os
from collections.abc import Awaitable, Callable, Iterator, Sequence

import grpc

from muster import wire
from muster.domain.errors import JobsRefusedError, MusterError
from muster.domain.ids import JobId
from muster.domain.job import JobSpec
from muster.rpc.status import error_from
from muster.rpc.v1 import jobs_pb2 as pb
from muster.wire.checks import MAX_JOBS

BATCH_BYTES = 4 * 1024 * 1024
"""Most bytes of one call, unless a single job is larger."""

_HEAD = 8
"""Bytes that stand before each job in a message."""


async def submit_in_batches(
    call: Callable[[pb.SubmitManyRequest], Awaitable[pb.SubmitManyResponse]],
    specs: Sequence[JobSpec],
    wishes: pb.SubmitRequest,
    address: str,
) -> tuple[JobId, ...]:
    """The ids of all jobs, each submitted with the same wishes; raises JobsRefusedError."""
    ids: list[JobId] = []
    names = [spec.name for spec in specs]
    for batch in _batches(specs, wishes):
        try:
            answer = await call(batch)
        except MusterError as error:
            if ids and not wishes.dry_run:
                raise JobsRefusedError(names, {len(ids): error}, ids) from error
            raise
        if answer.refusals:
            refused = {
                len(ids) + each.position: error_from(grpc.StatusCode[each.status], each.message, address=address)
                for each in answer.refusals
            }
            raise JobsRefusedError(names, refused, () if wishes.dry_run else ids)
        ids.extend(map(JobId, answer.ids))
    return tuple(ids)


def _batches(specs: Sequence[JobSpec], wishes: pb.SubmitRequest) -> Iterator[pb.SubmitManyRequest]:
    batch, size = pb.SubmitManyRequest(), 0
    for spec in specs:
        job = pb.SubmitRequest(
            spec=wire.job_spec_to_wire(spec),
            queue_anyway=wishes.queue_anyway,
            dry_run=wishes.dry_run,
            idempotency_key=os.urandom(16).hex(),
        )
        adds = job.ByteSize() + _HEAD
        if batch.jobs and (len(batch.jobs) == MAX_JOBS or size + adds > BATCH_BYTES):
            yield batch
            batch, size = pb.SubmitManyRequest(), 0
        batch.jobs.append(job)
        size += adds
    if batch.jobs:
        yield batch
