"""The clients' calls about projects, as gRPC has them."""

from coordinator.rpc.callers import Context, caller
from coordinator.rpc.refusals import translated
from coordinator.service.projects import ProjectOperations
from muster.rpc.v1 import projects_pb2 as pb
from muster.rpc.v1 import projects_pb2_grpc
from muster.wire.projects import permissions_from_wire, project_to_wire


class ProjectService(projects_pb2_grpc.ProjectServiceServicer):
    """Translates calls about projects."""

    def __init__(self, projects: ProjectOperations) -> None:
        self._projects = projects

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
    async def Remove(self, request: pb.RemoveProjectRequest, context: Context) -> pb.Project:
        """Forget a project that nothing uses."""
        return project_to_wire(await self._projects.remove(caller(), request.name))
