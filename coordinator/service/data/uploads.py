"""Operations on data of jobs: who may send what to the depot."""

from collections.abc import Mapping
from dataclasses import replace

from coordinator.clock import wall_time
from coordinator.service.data.trees import DepotSide, depot_there
from coordinator.service.operations import Operations
from coordinator.trust.caller import Caller
from muster.domain.data.depot_use import NOTHING_HELD, DepotUse
from muster.domain.data.tree import LARGEST_TREE_FORM
from muster.domain.data.upload import CODE_LIMIT, DepotPass
from muster.domain.errors import UnavailableError
from muster.domain.fleet.access import Access, Project

_ROOM = CODE_LIMIT + LARGEST_TREE_FORM
"""Bytes that one ticket lets in: a folder and its tree."""


class DataOperations:
    """What callers may do with data of jobs; an empty project is the default one."""

    def __init__(self, operations: Operations, depot: DepotSide | None, projects: Mapping[str, Project]) -> None:
        self._operations = operations
        self._depot = depot
        self._projects = projects

    async def upload(self, caller: Caller, project: str) -> DepotPass:
        """What opens the depot for one folder. Raises UnavailableError where no depot is there."""
        project = caller.meant_project(project)
        async with self._operations.begin(caller, "data.upload", project) as operation:
            operation.require_in(project)
            depot, address = depot_there(self._depot)
            ticket = depot.put_ticket(
                project=project,
                account=caller.name,
                room=_ROOM,
                limit=self._projects[project].storage,
                now=wall_time(),
            )
            return DepotPass(depot=address, ticket=ticket)

    async def storage(self, caller: Caller) -> DepotUse:
        """What the depot holds, with the projects that the caller may look at.

        Raises UnavailableError where no depot has been looked through yet.
        """
        async with self._operations.begin(caller, "data.storage"):
            use = None if self._depot is None else self._depot.use
            if use is None:
                depot_there(self._depot)
                raise UnavailableError("the depot is being looked through for the first time; try again in a moment")
            known = {name: project.storage for name, project in self._projects.items()}
            seen = {
                name: replace(use.projects.get(name, NOTHING_HELD), limit=known.get(name, 0))
                for name in sorted({*known, *use.projects})
                if caller.may(Access.VIEWER, name)
            }
            return replace(use, projects=seen)
