"""The clients' calls about projects and presets, as gRPC has them."""

from coordinator.rpc.callers import Context, caller
from coordinator.rpc.refusals import translated
from coordinator.service.projects import ProjectOperations
from coordinator.service.queueing.policies import PolicyOperations
from coordinator.service.queueing.presets import PresetOperations
from coordinator.service.queueing.quotas import QuotaOperations
from coordinator.service.queueing.usage import UsageOperations
from muster.rpc.v1 import presets_pb2, presets_pb2_grpc, projects_pb2_grpc
from muster.rpc.v1 import projects_pb2 as pb
from muster.wire import checks
from muster.wire.sharing.policies import job_policy_to_wire, policy_rules_from_wire
from muster.wire.sharing.presets import preset_from_wire, preset_kind, preset_to_wire
from muster.wire.sharing.projects import permissions_from_wire, project_to_wire
from muster.wire.sharing.quotas import changes_from_wire, queue_page_to_wire, unit_standing_to_wire
from muster.wire.sharing.usage import usage_report_to_wire, usage_wish_from_wire


class ProjectService(projects_pb2_grpc.ProjectServiceServicer):
    """Translates calls about projects."""

    def __init__(
        self,
        projects: ProjectOperations,
        quotas: QuotaOperations,
        usage: UsageOperations,
        policies: PolicyOperations,
    ) -> None:
        self._projects = projects
        self._quotas = quotas
        self._usage = usage
        self._policies = policies

    @translated
    async def List(self, request: pb.ListProjectsRequest, context: Context) -> pb.ListProjectsResponse:
        """Projects that the caller may look at, by name."""
        return pb.ListProjectsResponse(projects=map(project_to_wire, await self._projects.list(caller())))

    @translated
    async def Get(self, request: pb.GetProjectRequest, context: Context) -> pb.Project:
        """One project."""
        return project_to_wire(await self._projects.get(caller(), request.name))

    @translated
    async def Add(self, request: pb.AddProjectRequest, context: Context) -> pb.Project:
        """Make a project."""
        return project_to_wire(await self._projects.add(caller(), request.name))

    @translated
    async def Allow(self, request: pb.AllowRequest, context: Context) -> pb.Project:
        """The project, opened for this and nothing else."""
        return project_to_wire(
            await self._projects.allow(caller(), request.project, permissions_from_wire(request.permissions))
        )

    @translated
    async def LimitStorage(self, request: pb.LimitStorageRequest, context: Context) -> pb.Project:
        """The project, which may keep so much in the depot."""
        storage = checks.size(request.storage, "LimitStorageRequest.storage")
        return project_to_wire(await self._projects.limit_storage(caller(), request.project, storage))

    @translated
    async def Remove(self, request: pb.RemoveProjectRequest, context: Context) -> pb.Project:
        """Forget a project that nothing uses."""
        return project_to_wire(await self._projects.remove(caller(), request.name))

    @translated
    async def GetPolicies(self, request: pb.GetPoliciesRequest, context: Context) -> pb.GetPoliciesResponse:
        """The policies that jobs of a project keep."""
        found = await self._policies.get(caller(), request.project)
        return pb.GetPoliciesResponse(policies=map(job_policy_to_wire, found))

    @translated
    async def SetPolicy(self, request: pb.SetPolicyRequest, context: Context) -> pb.JobPolicy:
        """The policy of a project, or of the fleet, from now on."""
        rules = policy_rules_from_wire(request.rules)
        return job_policy_to_wire(await self._policies.set(caller(), request.project, rules))

    @translated
    async def Quotas(self, request: pb.QuotasRequest, context: Context) -> pb.QuotasResponse:
        """Projects that the caller may look at and their departments, by name."""
        return pb.QuotasResponse(units=map(unit_standing_to_wire, await self._quotas.list(caller())))

    @translated
    async def SetQuotas(self, request: pb.SetQuotasRequest, context: Context) -> pb.SetQuotasResponse:
        """Make all of these changes or none of them."""
        return pb.SetQuotasResponse(warnings=await self._quotas.set(caller(), changes_from_wire(request.changes)))

    @translated
    async def Queue(self, request: pb.QueueRequest, context: Context) -> pb.QueueResponse:
        """Queued jobs in the order in which they are tried."""
        return queue_page_to_wire(
            await self._quotas.queue(caller(), project=request.project, pool=request.pool, page=request.page)
        )

    @translated
    async def Usage(self, request: pb.UsageRequest, context: Context) -> pb.UsageResponse:
        """What was used in a span of time."""
        return usage_report_to_wire(await self._usage.report(caller(), usage_wish_from_wire(request)))


class PresetService(presets_pb2_grpc.PresetServiceServicer):
    """Translates calls about presets."""

    def __init__(self, presets: PresetOperations) -> None:
        self._presets = presets

    @translated
    async def Put(self, request: presets_pb2.PutPresetRequest, context: Context) -> presets_pb2.Preset:
        """Keep the next version of a preset."""
        return preset_to_wire(await self._presets.put(caller(), preset_from_wire(request.preset)))

    @translated
    async def Get(self, request: presets_pb2.GetPresetRequest, context: Context) -> presets_pb2.Preset:
        """One version of a preset."""
        kind = preset_kind(request.kind, "GetPresetRequest.kind")
        return preset_to_wire(await self._presets.get(caller(), request.project, kind, request.name, request.version))

    @translated
    async def List(self, request: presets_pb2.ListPresetsRequest, context: Context) -> presets_pb2.ListPresetsResponse:
        """The newest version of each preset that jobs of a project may use."""
        return presets_pb2.ListPresetsResponse(
            presets=map(preset_to_wire, await self._presets.list(caller(), request.project))
        )

    @translated
    async def History(
        self, request: presets_pb2.PresetHistoryRequest, context: Context
    ) -> presets_pb2.PresetHistoryResponse:
        """All versions of a preset, the newest first."""
        kind = preset_kind(request.kind, "PresetHistoryRequest.kind")
        found = await self._presets.history(caller(), request.project, kind, request.name)
        return presets_pb2.PresetHistoryResponse(versions=map(preset_to_wire, found))

    @translated
    async def Remove(
        self, request: presets_pb2.RemovePresetRequest, context: Context
    ) -> presets_pb2.RemovePresetResponse:
        """Forget all versions of a preset."""
        kind = preset_kind(request.kind, "RemovePresetRequest.kind")
        await self._presets.remove(caller(), request.project, kind, request.name)
        return presets_pb2.RemovePresetResponse()
