"""Many jobs submitted with few calls, each of which is accepted as a whole or not at all."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import grpc

from muster.client.mistyped import refuse_mistyped
from muster.domain.errors import InvalidJobError, JobsRefusedError, MusterError
from muster.domain.ids import JobId
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.rules.job_rules import refuse_faults
from muster.rpc.status import error_from
from muster.rpc.v1 import jobs_pb2 as pb
from muster.wire.checks import MAX_JOBS

if TYPE_CHECKING:
    from muster.jobfile.presets.job_document import JobDocument

BATCH_BYTES = 4 * 1024 * 1024
"""Most bytes of one call, unless a single job is larger."""

_HEAD = 8
"""Bytes that stand before each job in a message."""


async def submit_in_batches(
    call: Callable[[pb.SubmitManyRequest], Awaitable[pb.SubmitManyResponse]],
    specs: "Sequence[JobSpec | JobDocument]",
    requests: Iterable[pb.SubmitRequest],
    address: str,
) -> tuple[JobId, ...]:
    """The ids of all jobs; raises JobsRefusedError. `requests` ask for `specs`, all as dry runs or none."""
    names = [spec.name for spec in specs]
    _refuse_invalid(specs, names)
    ids: list[JobId] = []
    for batch in _batches(requests):
        accepted = [] if batch.jobs[0].dry_run else ids
        try:
            answer = await call(batch)
        except MusterError as error:
            if accepted:
                raise JobsRefusedError(names, {len(ids): error}, accepted) from error
            raise
        if answer.refusals:
            refused = {
                len(ids) + each.position: error_from(_status(each.status), each.message, address=address)
                for each in answer.refusals
            }
            raise JobsRefusedError(names, refused, accepted)
        ids.extend(map(JobId, answer.ids))
    return tuple(ids)


def _refuse_invalid(specs: "Sequence[JobSpec | JobDocument]", names: Sequence[str]) -> None:
    """Raise JobsRefusedError, which names every job that is not valid, before any is sent."""
    refused: dict[int, MusterError] = {}
    for place, spec in enumerate(specs):
        if not isinstance(spec, JobSpec):
            continue  # a coordinator finds out what is wrong with it
        try:
            refuse_faults(refuse_mistyped(spec))
        except InvalidJobError as error:
            refused[place] = error
    if refused:
        raise JobsRefusedError(names, refused, ())


def _status(name: str) -> grpc.StatusCode:
    return grpc.StatusCode.__members__.get(name, grpc.StatusCode.UNKNOWN)


def _batches(requests: Iterable[pb.SubmitRequest]) -> Iterator[pb.SubmitManyRequest]:
    batch, size = pb.SubmitManyRequest(), 0
    for job in requests:
        adds = job.ByteSize() + _HEAD
        if batch.jobs and (len(batch.jobs) == MAX_JOBS or size + adds > BATCH_BYTES):
            yield batch
            batch, size = pb.SubmitManyRequest(), 0
        batch.jobs.append(job)
        size += adds
    if batch.jobs:
        yield batch
