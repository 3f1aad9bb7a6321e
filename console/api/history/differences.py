"""Which ranks of a job differ from the others."""

from starlette.requests import Request
from starlette.responses import Response

from console.api.answers import many
from console.api.asking import AsCaller
from console.api.route import Listed, Route
from console.telemetry.gangs.gang_watch import JobDifference
from console.telemetry.gangs.watcher import GangWatcher
from muster.domain.errors import UnavailableError


async def list_job_differences(request: Request, client: AsCaller, job: str) -> Response:
    """Tell which ranks of a job differ from the others of their role, in what, and since when; or did a moment ago."""
    view = await client.jobs.get(job)
    watcher: GangWatcher | None = request.app.state.watcher
    if watcher is None:
        raise UnavailableError("this console watches no gangs: it is started with --token-file")
    return many(watcher.differences(view.id))


DIFFERENCE_ROUTES = (
    Route(
        verb="GET",
        path="/v1/jobs/{job}/differences",
        operation="jobs.get",
        handler=list_job_differences,
        answer=Listed(JobDifference),
    ),
)
