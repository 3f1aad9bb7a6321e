"""Operations on data of jobs: who may send what to the depot."""

from datetime import datetime
from typing import Protocol

from coordinator.clock import wall_time
from coordinator.service.operations import Operations
from coordinator.trust.caller import Caller
from muster.domain.data.tree import LARGEST_TREE_FORM
from muster.domain.data.upload import CODE_LIMIT, DepotPass
from muster.domain.errors import UnavailableError

_ROOM = CODE_LIMIT + LARGEST_TREE_FORM
"""Bytes that one ticket lets in: a folder and its tree."""


class DepotSide(Protocol):
    """The coordinator's connection to the depot."""

    @property
    def address(self) -> str | None:
        """HOST:PORT of the depot, with an empty host for that of the coordinator; None: there is no depot now."""
        ...

    def put_ticket(self, *, project: str, account: str, room: int, now: datetime) -> str:
        """What a client shows that sends objects, so many bytes at most."""
        ...

    def get_ticket(self, tree: str, *, project: str, account: str, now: datetime) -> str:
        """What a node or client shows that fetches a tree."""
        ...


class DataOperations:
    """What callers may do with data of jobs; an empty project is the default one."""

    def __init__(self, operations: Operations, depot: DepotSide | None) -> None:
        self._operations = operations
        self._depot = depot

    async def upload(self, caller: Caller, project: str) -> DepotPass:
        """What opens the depot for one folder. Raises UnavailableError where no depot is there."""
        project = caller.meant_project(project)
        async with self._operations.begin(caller, "data.upload", project) as operation:
            operation.require_in(project)
            depot, address = depot_there(self._depot)
            ticket = depot.put_ticket(project=project, account=caller.name, room=_ROOM, now=wall_time())
            return DepotPass(depot=address, ticket=ticket)


def depot_there(depot: DepotSide | None) -> tuple[DepotSide, str]:
    """The depot and its address; raises UnavailableError where there is none now."""
    address = None if depot is None else depot.address
    if depot is None or address is None:
        raise UnavailableError(
            "no depot is connected to the coordinator, so code cannot be sent: start muster-depot on its machine "
            "(docs/depot.md)"
        )
    return depot, address
