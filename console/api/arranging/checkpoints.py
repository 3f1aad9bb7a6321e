"""Checkpoints over HTTP: what jobs have saved, and what is to stay of it."""

from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response

from console.api.answers import one
from console.api.asking import AsCaller
from console.api.reading import AnAttempt
from console.api.route import Route
from muster.domain.data.checkpoint import CheckpointView, JobCheckpoints


async def list_checkpoints(request: Request, client: AsCaller, job: str) -> Response:
    """List what a job has saved, whole or not, the newest first."""
    return one(request, await client.checkpoints.of(job))


async def pin_checkpoint(request: Request, client: AsCaller, job: str, attempt: AnAttempt, checkpoint: str) -> Response:
    """Keep a checkpoint until it is unpinned or its job is deleted."""
    return one(request, await client.checkpoints.pin(job, checkpoint, attempt=attempt))


async def unpin_checkpoint(
    request: Request, client: AsCaller, job: str, attempt: AnAttempt, checkpoint: str
) -> Response:
    """Keep a checkpoint no longer than others: it goes at once if there are enough newer ones."""
    return one(request, await client.checkpoints.unpin(job, checkpoint, attempt=attempt))


async def remove_checkpoint(client: AsCaller, job: str, attempt: AnAttempt, checkpoint: str) -> Response:
    """Remove a checkpoint, pinned or not; the one with which the present attempt began stays."""
    await client.checkpoints.remove(job, checkpoint, attempt=attempt)
    return Response(status_code=HTTPStatus.NO_CONTENT)


_ONE = "/v1/jobs/{job}/checkpoints/{attempt}/{checkpoint}"

CHECKPOINT_ROUTES = (
    Route(
        verb="GET",
        path="/v1/jobs/{job}/checkpoints",
        operation="checkpoints.list",
        handler=list_checkpoints,
        answer=JobCheckpoints,
    ),
    Route(
        verb="POST",
        path=f"{_ONE}/pin",
        operation="checkpoints.pin",
        handler=pin_checkpoint,
        answer=CheckpointView,
    ),
    Route(
        verb="POST",
        path=f"{_ONE}/unpin",
        operation="checkpoints.unpin",
        handler=unpin_checkpoint,
        answer=CheckpointView,
    ),
    Route(
        verb="DELETE",
        path=_ONE,
        operation="checkpoints.remove",
        handler=remove_checkpoint,
        answer=None,
        status=HTTPStatus.NO_CONTENT,
    ),
)
