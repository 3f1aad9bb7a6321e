"""The SDK for projects, and for what each is opened for."""

from typing import Any

from muster.client.calls import Calls
from muster.domain.fleet.access import Policy, Project
from muster.rpc.v1 import trust_pb2 as pb
from muster.rpc.v1.trust_pb2_grpc import TrustServiceStub
from muster.wire import trust
from muster.wire.policies import policy_to_wire


class ProjectsClient:
    """Projects, reached as `client.projects`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    @property
    def _stub(self) -> Any:  # noqa: ANN401 - that of TrustService, whose two kinds mypy cannot tell apart here
        return self._calls.stub(TrustServiceStub)

    async def list(self) -> tuple[Project, ...]:
        """Projects that one may look at, by name.

        >>> names = [project.name for project in await client.projects.list()]
        """
        answer = await self._calls.ask(self._stub.ListProjects, pb.ListProjectsRequest())
        return tuple(map(trust.project_from_wire, answer.projects))

    async def add(self, name: str) -> Project:
        """Make a project.

        >>> await client.projects.add("vision")
        """
        request = pb.AddProjectRequest(name=name)
        return trust.project_from_wire(await self._calls.ask(self._stub.AddProject, request, pauses=()))

    async def set_policy(self, project: str, policy: Policy) -> Project:
        """Open a project for this and nothing else; the project.

        >>> await client.projects.set_policy("vision", Policy(host_paths=("/data",)))
        """
        request = pb.SetPolicyRequest(project=project, policy=policy_to_wire(policy))
        return trust.project_from_wire(await self._calls.ask(self._stub.SetPolicy, request))
