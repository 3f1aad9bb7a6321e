"""Many jobs at once over HTTP, and what jobs have left."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from console.api.answers import many, one
from console.api.asking import AsCaller
from console.api.problems import problem_of
from console.api.reading import AttemptNumber, Fields, Ranks
from console.api.route import Listed, Route
from muster.client.client import Client
from muster.domain.data.outputs import JobOutputs, OutputsRetry
from muster.domain.errors import MusterError

MOST_JOBS_OF_ACTION = 1_000
"""Jobs that one request does something with."""
ACTIONS_AT_ONCE = 16
"""Jobs of such a request that the coordinator is asked for at a time."""


class JobAction(StrEnum):
    """What is done with a job."""

    STOP = "stop"
    HOLD = "hold"
    UNHOLD = "unhold"
    SUSPEND = "suspend"
    RESUME = "resume"
    DELETE = "delete"


class WantedAction(Fields):
    """What is done, and with which jobs."""

    action: JobAction
    jobs: tuple[Annotated[str, Field(min_length=1, max_length=200)], ...] = Field(
        min_length=1, max_length=MOST_JOBS_OF_ACTION, description="Their ids, or names."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionOutcome:
    """What came of it with one job."""

    job: str
    done: bool
    problem: Mapping[str, Any] | None = None
    """Why not, as a request for this job alone would be answered; None: it is done."""


async def act_on_jobs(client: AsCaller, wanted: WantedAction) -> Response:
    """Do the same with many jobs; an outcome for each, in the order of the request.

    Where nothing came of it for any of them, the answer is the problem of the first.
    """
    slots = asyncio.Semaphore(ACTIONS_AT_ONCE)
    do = _DONE[wanted.action]
    failures: dict[str, MusterError] = {}

    async def act(job: str) -> None:
        async with slots:
            try:
                await do(client, job)
            except MusterError as error:
                failures[job] = error

    jobs = tuple(dict.fromkeys(wanted.jobs))
    async with asyncio.TaskGroup() as tasks:
        for job in jobs:
            tasks.create_task(act(job), name=f"{wanted.action} {job}")
    if len(failures) == len(jobs):
        raise failures[jobs[0]]
    return many(_outcome(job, failures.get(job)) for job in jobs)


async def show_outputs(
    request: Request, client: AsCaller, job: str, attempt: AttemptNumber = None, rank: Ranks = ()
) -> Response:
    """Say how much each rank of a job has left, and what has become of it."""
    return one(request, await client.outputs.of(job, attempt=attempt or 0, ranks=rank))


async def retry_outputs(
    request: Request, client: AsCaller, job: str, attempt: AttemptNumber = None, rank: Ranks = ()
) -> Response:
    """Have outputs stored again that lie on their nodes alone; nodes that are away do it once they are back."""
    return one(request, await client.outputs.retry(job, attempt=attempt or 0, ranks=rank))


def _outcome(job: str, failure: MusterError | None) -> ActionOutcome:
    return ActionOutcome(job=job, done=failure is None, problem=None if failure is None else problem_of(failure))


_DONE: Mapping[JobAction, Callable[[Client, str], Awaitable[object]]] = {
    JobAction.STOP: lambda client, job: client.jobs.stop(job),
    JobAction.HOLD: lambda client, job: client.jobs.hold(job),
    JobAction.UNHOLD: lambda client, job: client.jobs.unhold(job),
    JobAction.SUSPEND: lambda client, job: client.jobs.suspend(job),
    JobAction.RESUME: lambda client, job: client.jobs.resume(job),
    JobAction.DELETE: lambda client, job: client.jobs.delete(job),
}

SEVERAL_ROUTES = (
    Route(
        verb="POST",
        path="/v1/jobs/actions",
        operation="jobs.stop",
        handler=act_on_jobs,
        answer=Listed(ActionOutcome),
        example='--json \'{"action": "stop", "jobs": ["{job}"]}\' \'{url}/v1/jobs/actions\'',
    ),
    Route(verb="GET", path="/v1/jobs/{job}/outputs", operation="data.outputs", handler=show_outputs, answer=JobOutputs),
    Route(
        verb="POST",
        path="/v1/jobs/{job}/outputs/retry",
        operation="outputs.retry",
        handler=retry_outputs,
        answer=OutputsRetry,
    ),
)
