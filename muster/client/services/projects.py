"""The SDK for projects and what each is opened for, for presets, and for pools."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from muster.client.calls import Calls
from muster.domain.fleet.access import Permissions, Project
from muster.domain.fleet.policies.policy import JobPolicy, PolicyRule
from muster.domain.fleet.policies.preset import Preset, PresetKind
from muster.domain.fleet.pool import Pool
from muster.domain.fleet.quota import UnitChange
from muster.domain.fleet.standing_view import PoolView, QueuePage, UnitStandingView
from muster.domain.usage import UsageBy, UsageReport, UsageWish
from muster.rpc.v1 import pools_pb2, presets_pb2
from muster.rpc.v1 import projects_pb2 as pb
from muster.rpc.v1.pools_pb2_grpc import PoolServiceStub
from muster.rpc.v1.presets_pb2_grpc import PresetServiceStub
from muster.rpc.v1.projects_pb2_grpc import ProjectServiceStub
from muster.wire.sharing.policies import job_policy_from_wire, policy_rules_to_wire
from muster.wire.sharing.pools import pool_to_wire, pool_view_from_wire
from muster.wire.sharing.presets import preset_from_wire, preset_to_wire
from muster.wire.sharing.projects import permissions_to_wire, project_from_wire
from muster.wire.sharing.quotas import queue_page_from_wire, unit_change_to_wire, unit_standing_from_wire
from muster.wire.sharing.usage import usage_report_from_wire, usage_wish_to_wire


class ProjectsClient:
    """Projects, reached as `client.projects`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    @property
    def _stub(self) -> Any:  # noqa: ANN401 - that of ProjectService, whose two kinds mypy cannot tell apart here
        return self._calls.stub(ProjectServiceStub)

    async def list(self) -> tuple[Project, ...]:
        """Projects that one may look at, by name.

        >>> names = [project.name for project in await client.projects.list()]
        """
        answer = await self._calls.ask(self._stub.List, pb.ListProjectsRequest())
        return tuple(map(project_from_wire, answer.projects))

    async def get(self, name: str) -> Project:
        """One project; UnknownNameError for one that one may not look at.

        >>> opened = (await client.projects.get("vision")).permissions
        """
        return project_from_wire(await self._calls.ask(self._stub.Get, pb.GetProjectRequest(name=name)))

    async def add(self, name: str) -> Project:
        """Make a project.

        >>> await client.projects.add("vision")
        """
        request = pb.AddProjectRequest(name=name)
        return project_from_wire(await self._calls.ask(self._stub.Add, request, pauses=()))

    async def allow(self, project: str, permissions: Permissions) -> Project:
        """Open a project for this and nothing else; the project.

        >>> await client.projects.allow("vision", Permissions(host_paths=("/data",)))
        """
        request = pb.AllowRequest(project=project, permissions=permissions_to_wire(permissions))
        return project_from_wire(await self._calls.ask(self._stub.Allow, request))

    async def limit_storage(self, project: str, storage: int) -> Project:
        """Say how many bytes a project may keep in the fleet's depot; what is there stays.

        >>> await client.projects.limit_storage("vision", 200 * 2**30)
        """
        request = pb.LimitStorageRequest(project=project, storage=storage)
        return project_from_wire(await self._calls.ask(self._stub.LimitStorage, request))

    async def remove(self, name: str) -> Project:
        """Forget a project that nothing uses; the project as it was. Its jobs that have ended stay.

        Raises ConflictError with what uses it, and what to do about each: jobs that have not ended, secrets, access of
        accounts, tokens.

        >>> await client.projects.remove("vision")
        """
        request = pb.RemoveProjectRequest(name=name)
        return project_from_wire(await self._calls.ask(self._stub.Remove, request, pauses=()))

    async def policies(self, project: str) -> tuple[JobPolicy, ...]:
        """The policies that jobs of a project keep, that of the fleet first; `*`: only that of the fleet.

        >>> rules = {each.project: each.rules for each in await client.projects.policies("vision")}
        """
        answer = await self._calls.ask(self._stub.GetPolicies, pb.GetPoliciesRequest(project=project))
        return tuple(map(job_policy_from_wire, answer.policies))

    async def set_policy(self, project: str, rules: Mapping[str, PolicyRule]) -> JobPolicy:
        """Say what jobs of a project may say, or with `*` those of the fleet; without rules they may say anything.

        Jobs that were accepted stay what they were. Raises InvalidJobError for rules that no job file has a key for.

        >>> await client.projects.set_policy("vision", {"workers": PolicyRule(max="16")})
        """
        request = pb.SetPolicyRequest(project=project, rules=policy_rules_to_wire(rules))
        return job_policy_from_wire(await self._calls.ask(self._stub.SetPolicy, request))

    async def quotas(self) -> tuple[UnitStandingView, ...]:
        """Projects that one may look at and their departments: what they may have and what they hold, by name.

        >>> held = {view.unit.name: view.pools for view in await client.projects.quotas()}
        """
        answer = await self._calls.ask(self._stub.Quotas, pb.QuotasRequest())
        return tuple(map(unit_standing_from_wire, answer.units))

    async def set_quotas(self, changes: Sequence[UnitChange]) -> tuple[str, ...]:
        """Make all of these changes or none; warnings about what cannot be kept of them.

        Raises ConflictError where a unit is other than `before` says.

        >>> known = [view.unit for view in await client.projects.quotas()]
        >>> await client.projects.set_quotas(planned(known, wanted))
        """
        request = pb.SetQuotasRequest(changes=map(unit_change_to_wire, changes))
        return tuple((await self._calls.ask(self._stub.SetQuotas, request, pauses=())).warnings)

    async def queue(self, *, project: str = "", pool: str = "", page: str = "") -> QueuePage:
        """Queued jobs in the order in which they are tried, at most a thousand; `page` is where to go on.

        >>> first = (await client.projects.queue(project="vision")).lines
        """
        request = pb.QueueRequest(project=project, pool=pool, page=page)
        return queue_page_from_wire(await self._calls.ask(self._stub.Queue, request))

    async def usage(
        self,
        *,
        by: UsageBy = UsageBy.PROJECT,
        since: datetime | None = None,
        until: datetime | None = None,
        project: str = "",
        pool: str = "",
    ) -> UsageReport:
        """What was used of GPUs, CPUs and memory in a span of time, also by jobs that are deleted; the largest first.

        >>> report = await client.projects.usage(by=UsageBy.USER, since=datetime.now(UTC) - timedelta(days=7))
        """
        wish = UsageWish(by=by, since=since, until=until, project=project, pool=pool)
        return usage_report_from_wire(await self._calls.ask(self._stub.Usage, usage_wish_to_wire(wish)))


class PresetsClient:
    """Presets, reached as `client.presets`: fragments of job files; those of the project `*` are of the fleet."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    @property
    def _stub(self) -> Any:  # noqa: ANN401 - that of PresetService, whose two kinds mypy cannot tell apart here
        return self._calls.stub(PresetServiceStub)

    async def put(self, preset: Preset) -> Preset:
        """Keep the next version of a preset; what the newest one says already is given back as it is.

        Raises InvalidJobError for what no job file has a key for, and for what a policy would refuse.

        >>> image = {"image": "registry.local/pt:2.9", "env": {"NCCL_DEBUG": "WARN"}}
        >>> wish = Preset(project="vision", kind=PresetKind.ENVIRONMENT, name="pytorch-2.9", document=image)
        >>> made = await client.presets.put(wish)
        """
        request = presets_pb2.PutPresetRequest(preset=preset_to_wire(preset))
        return preset_from_wire(await self._calls.ask(self._stub.Put, request))

    async def get(self, kind: PresetKind, name: str, *, version: int = 0, project: str = "") -> Preset:
        """One version of the preset that jobs of a project mean by a name: its own, else that of the fleet.

        `version` 0 is the newest.

        >>> document = (await client.presets.get(PresetKind.ENVIRONMENT, "pytorch-2.9", project="vision")).document
        """
        request = presets_pb2.GetPresetRequest(project=project, kind=kind, name=name, version=version)
        return preset_from_wire(await self._calls.ask(self._stub.Get, request))

    async def list(self, project: str = "") -> tuple[Preset, ...]:
        """The newest version of each preset that jobs of a project may use, its own first; `*`: those of the fleet.

        >>> names = [f"{each.kind} {each.name}" for each in await client.presets.list("vision")]
        """
        answer = await self._calls.ask(self._stub.List, presets_pb2.ListPresetsRequest(project=project))
        return tuple(map(preset_from_wire, answer.presets))

    async def history(self, kind: PresetKind, name: str, *, project: str = "") -> tuple[Preset, ...]:
        """All versions of a preset, the newest first.

        >>> notes = [each.note for each in await client.presets.history(PresetKind.TEMPLATE, "ddp", project="vision")]
        """
        request = presets_pb2.PresetHistoryRequest(project=project, kind=kind, name=name)
        return tuple(map(preset_from_wire, (await self._calls.ask(self._stub.History, request)).versions))

    async def remove(self, kind: PresetKind, name: str, *, project: str = "") -> None:
        """Forget all versions of a preset; jobs that were made with it stay what they are.

        >>> await client.presets.remove(PresetKind.TEMPLATE, "ddp", project="vision")
        """
        request = presets_pb2.RemovePresetRequest(project=project, kind=kind, name=name)
        await self._calls.ask(self._stub.Remove, request, pauses=())


class PoolsClient:
    """Pools, reached as `client.pools`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    @property
    def _stub(self) -> Any:  # noqa: ANN401 - that of PoolService, whose two kinds mypy cannot tell apart here
        return self._calls.stub(PoolServiceStub)

    async def list(self) -> tuple[PoolView, ...]:
        """All pools by name, those that are set and those that have nodes, with what they have.

        >>> nodes = {view.pool.name: view.nodes for view in await client.pools.list()}
        """
        answer = await self._calls.ask(self._stub.List, pools_pb2.ListPoolsRequest())
        return tuple(map(pool_view_from_wire, answer.pools))

    async def put(self, pool: Pool, *, anyway: bool = False) -> tuple[str, ...]:
        """Set a pool, in place of what was said of it; warnings, a sentence each.

        Raises ConflictError where its selector takes no node, unless it is to be set `anyway`.

        >>> await client.pools.put(Pool(name="h100", selector={"gpu": "h100"}, longest_run=timedelta(days=3)))
        """
        request = pools_pb2.PutPoolRequest(pool=pool_to_wire(pool), anyway=anyway)
        return tuple((await self._calls.ask(self._stub.Put, request)).warnings)

    async def remove(self, name: str) -> tuple[str, ...]:
        """Say nothing of a pool any longer, so that its nodes are in another one; warnings, a sentence each.

        >>> await client.pools.remove("h100")
        """
        request = pools_pb2.RemovePoolRequest(name=name)
        # Never repeated: what was removed by a request whose answer got lost would not be found by the next one.
        return tuple((await self._calls.ask(self._stub.Remove, request, pauses=())).warnings)
