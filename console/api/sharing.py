"""Shares over HTTP: projects, quotas, the queue, usage, presets and secrets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Body, Query
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from console.api.answers import many, one
from console.api.asking import AsCaller
from console.api.reading import Fields, Page, Time
from console.api.route import Listed, Route
from muster.domain.fleet.access import Project
from muster.domain.fleet.policies.policy import JobPolicy
from muster.domain.fleet.policies.preset import Preset, PresetKind
from muster.domain.fleet.quota_plan import planned, told
from muster.domain.fleet.secret import Secret, SecretKind
from muster.domain.fleet.standing_view import QueueLine, UnitStandingView
from muster.domain.usage import UsageBy, UsageReport
from muster.jobfile.policies import policy_rules
from muster.quota_file import units_of

OfProject = Annotated[str, Query(alias="project", description="Only this project; none: all that one may look at.")]
Version = Annotated[int, Query(ge=0, description="The number of the version; 0: the newest.")]
OfPool = Annotated[str, Query(alias="pool", description="Only this pool; none: all.")]


class PresetBody(Fields):
    """The next version of a preset."""

    document: Mapping[str, Any] = Field(min_length=1, description="Values by key of the job file.")
    title: str = ""
    note: str = ""


class SecretValues(Fields):
    """The values of a secret, which go in and never come out."""

    values: Mapping[str, str] = Field(min_length=1, repr=False)
    kind: SecretKind = SecretKind.GENERIC


async def list_projects(client: AsCaller) -> Response:
    """The projects that one may look at, by name."""
    return many(await client.projects.list())


async def get_project(request: Request, client: AsCaller, project: str) -> Response:
    """One project, and what it is opened for."""
    return one(request, await client.projects.get(project))


async def add_project(request: Request, client: AsCaller, project: str) -> Response:
    """Add a project."""
    return one(request, await client.projects.add(project), HTTPStatus.CREATED)


async def remove_project(client: AsCaller, project: str) -> Response:
    """Forget a project that nothing uses."""
    await client.projects.remove(project)
    return Response(status_code=HTTPStatus.NO_CONTENT)


async def list_quotas(client: AsCaller) -> Response:
    """Departments and projects: what they may have, what they hold, and what their share is."""
    return many(await client.projects.quotas())


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedQuotas:
    """What the terms of departments and projects have changed."""

    changes: Sequence[str]
    """A line for each term that is other than it was."""
    applied: bool
    warnings: Sequence[str]
    """What cannot be kept of them, a sentence each."""


async def put_quotas(
    request: Request,
    client: AsCaller,
    wanted: Annotated[
        Mapping[str, Any], Body(description="`departments` and `projects`, as `muster quota apply` reads them.")
    ],
    dry_run: Annotated[bool, Query(description="Only say what would change.")] = False,
) -> Response:
    """Give departments and projects these terms and no others, all at once; who is not named stays as it is."""
    known = [each.unit for each in await client.projects.quotas()]
    changes = planned(known, units_of(wanted, known))
    lines = [line for change in changes for line in told(change)]
    warnings = await client.projects.set_quotas(changes) if not dry_run else ()
    return one(request, AppliedQuotas(changes=lines, applied=not dry_run, warnings=warnings))


async def list_queue(client: AsCaller, project: OfProject = "", pool: OfPool = "", page: Page = "") -> Response:
    """Queued jobs in the order in which they are tried, and why each waits."""
    found = await client.projects.queue(project=project, pool=pool, page=page)
    return many(found.lines, found.next_page)


async def show_usage(  # noqa: PLR0913 - one for each condition
    *,
    request: Request,
    client: AsCaller,
    by: Annotated[UsageBy, Query(description="What each row is about.")] = UsageBy.PROJECT,
    since: Time = None,
    until: Time = None,
    project: OfProject = "",
    pool: OfPool = "",
) -> Response:
    """Say what was used of GPUs, CPUs and memory in a span of time."""
    report = await client.projects.usage(by=by, since=since, until=until, project=project, pool=pool)
    return one(request, report)


async def list_policies(client: AsCaller, project: str) -> Response:
    """The policies that jobs of a project keep, that of the fleet first; of the project `*` only that of the fleet."""
    return many(await client.projects.policies(project))


async def put_policy(
    request: Request,
    client: AsCaller,
    project: str,
    wanted: Annotated[
        Mapping[str, Any], Body(description="`rules` by key of the job file, as `muster projects policy` reads them.")
    ],
) -> Response:
    """Say what jobs of a project, or with `*` of the fleet, may say; without rules they may say anything."""
    return one(request, await client.projects.set_policy(project, policy_rules(wanted)))


async def list_presets(client: AsCaller, project: str) -> Response:
    """The newest version of each preset that jobs of a project may use; of the project `*` those of the fleet."""
    return many(await client.presets.list(project))


async def get_preset(
    request: Request, client: AsCaller, project: str, preset_kind: PresetKind, preset: str, version: Version = 0
) -> Response:
    """One version of the preset that jobs of a project mean by a name: its own, else that of the fleet."""
    return one(request, await client.presets.get(preset_kind, preset, version=version, project=project))


async def list_preset_versions(client: AsCaller, project: str, preset_kind: PresetKind, preset: str) -> Response:
    """All versions of a preset, the newest first."""
    return many(await client.presets.history(preset_kind, preset, project=project))


async def put_preset(
    request: Request, client: AsCaller, project: str, preset_kind: PresetKind, preset: str, body: PresetBody
) -> Response:
    """Keep the next version of a preset; what the newest one says already makes no other one."""
    wish = Preset(
        project=project, kind=preset_kind, name=preset, document=body.document, title=body.title, note=body.note
    )
    return one(request, await client.presets.put(wish))


async def remove_preset(client: AsCaller, project: str, preset_kind: PresetKind, preset: str) -> Response:
    """Forget all versions of a preset; jobs that were made with it stay what they are."""
    await client.presets.remove(preset_kind, preset, project=project)
    return Response(status_code=HTTPStatus.NO_CONTENT)


async def list_secrets(client: AsCaller, project: str) -> Response:
    """The secrets of a project by name, without their values."""
    return many(await client.secrets.list(project))


async def put_secret(request: Request, client: AsCaller, project: str, secret: str, values: SecretValues) -> Response:
    """Store a secret with these values and no others; one of that name is replaced."""
    given = {key: value.encode() for key, value in values.values.items()}
    stored = await client.secrets.set(secret, given, kind=values.kind, project=project, replace=True)
    return one(request, stored)


async def remove_secret(client: AsCaller, project: str, secret: str) -> Response:
    """Forget a secret; executions that have it keep it until they end."""
    await client.secrets.remove(secret, project)
    return Response(status_code=HTTPStatus.NO_CONTENT)


_PRESET = "/v1/projects/{project}/presets/{preset_kind}/{preset}"

SHARING_ROUTES = (
    Route(verb="GET", path="/v1/projects", operation="projects.list", handler=list_projects, answer=Listed(Project)),
    Route(verb="GET", path="/v1/projects/{project}", operation="projects.get", handler=get_project, answer=Project),
    Route(
        verb="PUT",
        path="/v1/projects/{project}",
        operation="projects.add",
        handler=add_project,
        answer=Project,
        status=HTTPStatus.CREATED,
    ),
    Route(
        verb="DELETE",
        path="/v1/projects/{project}",
        operation="projects.remove",
        handler=remove_project,
        answer=None,
        status=HTTPStatus.NO_CONTENT,
    ),
    Route(
        verb="GET",
        path="/v1/projects/{project}/policies",
        operation="policies.get",
        handler=list_policies,
        answer=Listed(JobPolicy),
    ),
    Route(
        verb="PUT",
        path="/v1/projects/{project}/policy",
        operation="policies.set",
        handler=put_policy,
        answer=JobPolicy,
        example='-X PUT --json \'{"rules": {"workers": {"max": 16}}}\' \'{url}/v1/projects/{project}/policy\'',
    ),
    Route(
        verb="GET",
        path="/v1/projects/{project}/presets",
        operation="presets.list",
        handler=list_presets,
        answer=Listed(Preset),
    ),
    Route(verb="GET", path=_PRESET, operation="presets.get", handler=get_preset, answer=Preset),
    Route(
        verb="GET",
        path=f"{_PRESET}/versions",
        operation="presets.history",
        handler=list_preset_versions,
        answer=Listed(Preset),
    ),
    Route(
        verb="PUT",
        path=_PRESET,
        operation="presets.put",
        handler=put_preset,
        answer=Preset,
        example='-X PUT --json \'{"document": {"image": "registry.local/pt:2.9"}}\' '
        "'{url}/v1/projects/{project}/presets/environment/pytorch'",
    ),
    Route(
        verb="DELETE",
        path=_PRESET,
        operation="presets.remove",
        handler=remove_preset,
        answer=None,
        status=HTTPStatus.NO_CONTENT,
    ),
    Route(
        verb="GET",
        path="/v1/projects/{project}/secrets",
        operation="secrets.list",
        handler=list_secrets,
        answer=Listed(Secret),
    ),
    Route(
        verb="PUT",
        path="/v1/projects/{project}/secrets/{secret}",
        operation="secrets.set",
        handler=put_secret,
        answer=Secret,
        example='-X PUT --json \'{"values": {"key": "0123"}}\' \'{url}/v1/projects/{project}/secrets/{secret}\'',
    ),
    Route(
        verb="DELETE",
        path="/v1/projects/{project}/secrets/{secret}",
        operation="secrets.remove",
        handler=remove_secret,
        answer=None,
        status=HTTPStatus.NO_CONTENT,
    ),
    Route(verb="GET", path="/v1/quotas", operation="quotas.list", handler=list_quotas, answer=Listed(UnitStandingView)),
    Route(
        verb="PUT",
        path="/v1/quotas",
        operation="quotas.set",
        handler=put_quotas,
        answer=AppliedQuotas,
        example='-X PUT --json \'{"projects": {"vision": {"gpus": 16}}}\' \'{url}/v1/quotas?dry_run=true\'',
    ),
    Route(verb="GET", path="/v1/queue", operation="queue.list", handler=list_queue, answer=Listed(QueueLine)),
    Route(
        verb="GET",
        path="/v1/usage",
        operation="usage.show",
        handler=show_usage,
        answer=UsageReport,
        example="'{url}/v1/usage?by=user'",
    ),
)
