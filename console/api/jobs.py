"""Jobs over HTTP: submit, find, change and end them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated

from fastapi import Header, Query
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from console.api.answers import many, one
from console.api.asking import AsCaller
from console.api.mirrored.lists import FromMirror, Sort, Where
from console.api.reading import AttemptNumber, DescribedJobs, Fields, Page, PageSize, Seconds, jobs_of, span_of
from console.api.route import Listed, Route
from console.mirror.rows import JOB_FIELDS, LABEL_FIELD
from muster.client.client import Client
from muster.domain.errors import InvalidJobError, MusterError
from muster.domain.feed import FeedPart
from muster.domain.ids import JobId
from muster.domain.jobs.explanation import Explanation
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.placing.pool_choice import PoolChoice
from muster.domain.jobs.queueing.change import JobChange
from muster.domain.jobs.view import JobView

if TYPE_CHECKING:
    from muster.jobfile.presets.job_document import JobDocument

YAML = "application/yaml"
Labels = Annotated[Sequence[str], Query(alias="label", description="`KEY=VALUE`; a job has to carry all of them.")]
DryRun = Annotated[bool, Query(description="Only check; nothing is stored.")]
QueueAnyway = Annotated[bool, Query(description="Accept it although no present node could ever run it.")]
Project = Annotated[str, Query(description="The project of jobs whose file names none.")]
Key = Annotated[
    str,
    Header(alias="Idempotency-Key", max_length=200, description="Sent again with a request, it makes no second job."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedJob:
    """One of several jobs that were accepted."""

    id: JobId
    """Empty for a dry run."""
    name: str


class JobPatch(Fields):
    """What of a job is to be other than it is; what is left out stays."""

    priority: int | None = Field(default=None, ge=-1000, le=1000)
    job_class: JobClass | None = Field(default=None, alias="class")
    pools: tuple[str, ...] | None = None
    run: Seconds | None = Field(default=None, description="Seconds that user code may run; 0: without a limit.")
    queue: Seconds | None = Field(default=None, description="Seconds that an attempt may be queued; 0: any.")
    expected: Seconds | None = Field(default=None, description="Seconds that user code will run; 0: nobody knows.")

    @property
    def change(self) -> JobChange:
        """The change as the coordinator is asked for it."""
        return JobChange(
            priority=self.priority,
            job_class=self.job_class,
            pools=None if self.pools is None else tuple(PoolChoice(pool=pool) for pool in self.pools),
            run=span_of(self.run),
            queue=span_of(self.queue),
            expected=span_of(self.expected),
        )


async def list_jobs(  # noqa: PLR0913 - one for each condition
    *,
    client: AsCaller,
    phase: Annotated[Sequence[JobPhase], Query()] = (),
    project: Annotated[Sequence[str], Query()] = (),
    owner: Annotated[Sequence[str], Query()] = (),
    name: Annotated[str, Query(description="A part of the name.")] = "",
    label: Labels = (),
    mine: Annotated[bool, Query(description="Those that one has submitted.")] = False,
    where: Where = (),
    sort: Sort = "",
    page_size: PageSize = 100,
    page: Page = "",
    mirror: FromMirror,
) -> Response:
    """Jobs, the newest first unless `sort` says otherwise, without their executions."""
    labels = _labels(label)
    if (mirrored := await mirror.rows(FeedPart.JOBS, JOB_FIELDS, where, sort, page_size, page)) is not None:
        owners = {*owner, *((mirrored.rights.name,) if mine else ())}
        return mirrored.of(
            lambda row: (
                (not phase or row.fields["phase"] in phase)
                and (not project or row.fields["project"] in project)
                and (not owners or row.fields["owner"] in owners)
                and name in str(row.fields["name"])
                and all(row.fields.get(LABEL_FIELD + key) == value for key, value in labels.items())
            )
        )
    found = await client.jobs.page(
        phases=phase,
        projects=project,
        owners=owner,
        name_contains=name,
        labels=labels,
        mine=mine,
        size=page_size,
        page=page,
    )
    return many(found.jobs, found.next_page)


async def submit_jobs(
    *,
    request: Request,
    client: AsCaller,
    project: Project = "",
    dry_run: DryRun = False,
    queue_anyway: QueueAnyway = False,
    idempotency_key: Key = "",
) -> Response:
    """Submit a job file: one job, or several that are accepted all together or not at all.

    One job is answered with all that is known of it, several with the ids of each.
    """
    jobs = await jobs_of(request)
    wish = _Wish(project, dry_run, queue_anyway, idempotency_key)
    try:
        if jobs.is_list:
            return many(await _submit_all(client, jobs, wish))
        return _created(request, await _submit(client, jobs.specs[0], wish), dry_run=dry_run)
    except MusterError as error:
        raise jobs.located(error) from None


async def check_jobs(
    request: Request, client: AsCaller, project: Project = "", queue_anyway: QueueAnyway = False
) -> Response:
    """Say whether a job file would be taken, and how the fleet would read it; nothing is stored."""
    jobs, wish = await jobs_of(request), _Wish(project, dry_run=True, queue_anyway=queue_anyway, key="")
    try:
        await _submit_all(client, jobs, wish)
        specs = [each if isinstance(each, JobSpec) else (await _submit(client, each, wish)).spec for each in jobs.specs]
    except MusterError as error:
        raise jobs.located(error) from None
    return many(specs)


async def get_job(
    request: Request,
    client: AsCaller,
    job: str,
    attempt: AttemptNumber = None,
) -> Response:
    """One job: what it is doing, its attempts, and its executions."""
    return one(request, await client.jobs.get(job, attempt=attempt))


async def change_job(request: Request, client: AsCaller, job: str, patch: JobPatch) -> Response:
    """Make a job other than it was submitted: its priority until it ends, all else until it has its nodes."""
    return one(request, await client.jobs.change(job, patch.change))


async def delete_job(
    client: AsCaller, job: str, force: Annotated[bool, Query(description="Stop it first if need be.")] = False
) -> Response:
    """Forget a job that has ended, and its logs; with `force` (202) as soon as it has been stopped."""
    await client.jobs.delete(job, force=force)
    return Response(status_code=HTTPStatus.ACCEPTED if force else HTTPStatus.NO_CONTENT)


async def stop_job(
    request: Request,
    client: AsCaller,
    job: str,
    now: Annotated[bool, Query(description="Do not wait for its outputs; they stay on the nodes.")] = False,
) -> Response:
    """Stop a job; one that has ended stays as it is."""
    return one(request, await client.jobs.stop(job, now=now))


async def hold_job(request: Request, client: AsCaller, job: str) -> Response:
    """Keep a job out of the queue until it is released."""
    return one(request, await client.jobs.hold(job))


async def unhold_job(request: Request, client: AsCaller, job: str) -> Response:
    """Release a job that is held."""
    return one(request, await client.jobs.unhold(job))


async def suspend_job(request: Request, client: AsCaller, job: str) -> Response:
    """Stop a job with its grace period; it waits until it is resumed, and keeps its place in the order."""
    return one(request, await client.jobs.suspend(job))


async def resume_job(request: Request, client: AsCaller, job: str) -> Response:
    """Let a suspended job go on."""
    return one(request, await client.jobs.resume(job))


async def resubmit_job(
    request: Request, client: AsCaller, job: str, queue_anyway: QueueAnyway = False, idempotency_key: Key = ""
) -> Response:
    """Submit a job like this one."""
    spec = (await client.jobs.get(job)).spec
    wish = _Wish(spec.project, dry_run=False, queue_anyway=queue_anyway, key=idempotency_key)
    return _created(request, await _submit(client, spec, wish), dry_run=False)


async def show_job_file(request: Request, client: AsCaller, job: str) -> Response:
    """Show the job file of a job, with all that was filled in."""
    return one(request, (await client.jobs.get(job)).spec)


async def explain_job(request: Request, client: AsCaller, job: str) -> Response:
    """Say why a job is where it is: what each pool and node lacks, what would help, and when it starts."""
    return one(request, await client.jobs.why(job))


@dataclass(frozen=True, slots=True)
class _Wish:
    project: str
    dry_run: bool
    queue_anyway: bool
    key: str


async def _submit(client: Client, spec: "JobSpec | JobDocument", wish: _Wish) -> JobView:
    return await client.jobs.submit(
        _in_project(spec, wish), queue_anyway=wish.queue_anyway, dry_run=wish.dry_run, idempotency_key=wish.key
    )


async def _submit_all(client: Client, jobs: DescribedJobs, wish: _Wish) -> Sequence[AcceptedJob]:
    specs = [_in_project(spec, wish) for spec in jobs.specs]
    ids = await client.jobs.submit_many(
        specs, queue_anyway=wish.queue_anyway, dry_run=wish.dry_run, idempotency_key=wish.key
    )
    return [AcceptedJob(id=id_, name=spec.name) for id_, spec in zip(ids, specs, strict=True)]


def _in_project(spec: "JobSpec | JobDocument", wish: _Wish) -> "JobSpec | JobDocument":
    if not isinstance(spec, JobSpec):
        return spec.in_project(wish.project)
    return spec if spec.project or not wish.project else replace(spec, project=wish.project)


def _created(request: Request, job: JobView, *, dry_run: bool) -> Response:
    if dry_run:
        return one(request, job)
    return one(request, job, HTTPStatus.CREATED, {"Location": f"/v1/jobs/{job.id}"})


def _labels(written: Sequence[str]) -> dict[str, str]:
    pairs = [each.partition("=") for each in written]
    for key, equals, _ in pairs:
        if not key or not equals:
            raise InvalidJobError(f"label={key} is not of the form KEY=VALUE")
    return {key: value for key, _, value in pairs}


JOB_ROUTES = (
    Route(
        verb="GET",
        path="/v1/jobs",
        operation="jobs.list",
        handler=list_jobs,
        answer=Listed(JobView),
        example="'{url}/v1/jobs?phase=running&page_size=20'",
    ),
    Route(
        verb="POST",
        path="/v1/jobs",
        operation="jobs.submit",
        handler=submit_jobs,
        answer=JobView,
        status=HTTPStatus.CREATED,
        body=YAML,
        example="-H 'Content-Type: application/yaml' --data-binary @job.yaml '{url}/v1/jobs'",
    ),
    Route(
        verb="POST",
        path="/v1/check",
        operation="jobs.submit",
        handler=check_jobs,
        answer=Listed(JobSpec),
        body=YAML,
        example="-H 'Content-Type: application/yaml' --data-binary @job.yaml '{url}/v1/check'",
    ),
    Route(verb="GET", path="/v1/jobs/{job}", operation="jobs.get", handler=get_job, answer=JobView),
    Route(
        verb="PATCH",
        path="/v1/jobs/{job}",
        operation="jobs.change",
        handler=change_job,
        answer=JobView,
        example="-X PATCH --json '{\"priority\": 10}' '{url}/v1/jobs/{job}'",
    ),
    Route(
        verb="DELETE",
        path="/v1/jobs/{job}",
        operation="jobs.delete",
        handler=delete_job,
        answer=None,
        status=HTTPStatus.NO_CONTENT,
        or_status=HTTPStatus.ACCEPTED,
        example="-X DELETE '{url}/v1/jobs/{job}?force=true'",
    ),
    Route(verb="POST", path="/v1/jobs/{job}/stop", operation="jobs.stop", handler=stop_job, answer=JobView),
    Route(verb="POST", path="/v1/jobs/{job}/hold", operation="jobs.hold", handler=hold_job, answer=JobView),
    Route(verb="POST", path="/v1/jobs/{job}/unhold", operation="jobs.unhold", handler=unhold_job, answer=JobView),
    Route(verb="POST", path="/v1/jobs/{job}/suspend", operation="jobs.suspend", handler=suspend_job, answer=JobView),
    Route(verb="POST", path="/v1/jobs/{job}/resume", operation="jobs.resume", handler=resume_job, answer=JobView),
    Route(
        verb="POST",
        path="/v1/jobs/{job}/resubmit",
        operation="jobs.submit",
        handler=resubmit_job,
        answer=JobView,
        status=HTTPStatus.CREATED,
    ),
    Route(verb="GET", path="/v1/jobs/{job}/file", operation="jobs.get", handler=show_job_file, answer=JobSpec),
    Route(verb="GET", path="/v1/jobs/{job}/why", operation="jobs.why", handler=explain_job, answer=Explanation),
)
