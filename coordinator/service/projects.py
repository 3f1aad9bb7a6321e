"""Operations on projects: which there are, and what each is opened for."""

from collections.abc import Sequence
from dataclasses import replace

from coordinator.clock import wall_time
from coordinator.service.operations import Operations
from coordinator.trust.caller import Caller
from coordinator.trust.policy import changes
from coordinator.trust.registry import Registry
from muster.domain.errors import ConflictError
from muster.domain.fleet.access import OPEN, Access, AuditEntry, Policy, Project


class ProjectOperations:
    """What callers may do with projects; in a fleet of one machine all are `open_for_all`."""

    def __init__(self, operations: Operations, registry: Registry, *, open_for_all: bool) -> None:
        self._operations = operations
        self._registry = registry
        self._open_for_all = open_for_all

    async def list(self, caller: Caller) -> Sequence[Project]:
        """Projects that the caller may look at, by name."""
        async with self._operations.begin(caller, "projects.list"):
            found = [each for name, each in sorted(self._registry.projects.items()) if caller.may(Access.VIEWER, name)]
            return [replace(each, policy=OPEN) for each in found] if self._open_for_all else found

    async def add(self, caller: Caller, name: str) -> Project:
        """Make a project; raises ConflictError where there is one of that name."""
        async with self._operations.begin(caller, "projects.add", name) as operation:
            return await self._registry.add_project(name, wall_time(), operation.done())

    async def allow(self, caller: Caller, name: str, policy: Policy) -> Project:
        """The project, opened for this and nothing else; jobs that were accepted are what they were."""
        async with self._operations.begin(caller, "projects.allow", name) as operation:
            if self._open_for_all:
                raise ConflictError("the projects of `muster up` are open for everything; there is nothing to allow")

            def done(before: Policy) -> AuditEntry:
                return operation.done(changes(before, policy))

            return await self._registry.set_policy(name, policy, done)
