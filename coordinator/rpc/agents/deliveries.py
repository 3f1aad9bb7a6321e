"""What nodes are given for their executions, and what the audit log says of that: once for each execution and thing."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence

from coordinator.clock import wall_time
from coordinator.service.data.trees import DepotSide, depot_there
from coordinator.service.operations import audit_entry
from coordinator.trust.audit.log import AuditLog
from coordinator.trust.caller import Caller
from muster.domain.data.tree import LARGEST_TREE_FORM
from muster.domain.data.upload import DepotPass
from muster.domain.errors import ConflictError
from muster.domain.ids import ExecutionId

MOST_DELIVERIES = 20_000
"""Most deliveries that are remembered; a node that asks for an older one again is written down again."""
_NAMES = 150
"""Most characters of names in one entry; more names take more entries."""

Delivery = tuple[ExecutionId, tuple[str, ...]]


class Deliveries:
    """The deliveries that were written down last, so that a node that asks again and again does not fill the disk."""

    def __init__(self) -> None:
        self._told: OrderedDict[Delivery, None] = OrderedDict()

    def targets(self, execution: ExecutionId, project: str, secrets: Sequence[str]) -> list[str]:
        """The targets of the entries about a delivery, like `vision/db, wandb`; empty: it is written down already."""
        delivery = (execution, tuple(sorted(secrets)))
        if delivery in self._told or not secrets:
            return []
        self._told[delivery] = None
        if len(self._told) > MOST_DELIVERIES:
            self._told.popitem(last=False)
        return [f"{project}/{names}" for names in _joined(delivery[1])]


class DepotTickets:
    """Opens the depot to nodes for one of their executions; the audit log says to whom and for what."""

    def __init__(self, depot: DepotSide | None, audit: AuditLog) -> None:
        self._depot = depot
        self._audit = audit
        self._told = Deliveries()

    def to_fetch(self, who: Caller, id_: ExecutionId, project: str, tree: str) -> DepotPass:
        """What opens the depot for a tree that an execution may have; UnavailableError where no depot is."""
        depot, address = depot_there(self._depot)
        self._note(who, "data.deliver", self._told.targets(id_, project, [tree]), f"ok, given to execution {id_}")
        ticket = depot.get_ticket(tree, project=project, account=who.name, now=wall_time())
        return DepotPass(depot=address, ticket=ticket)

    def to_store(
        self, who: Caller, id_: ExecutionId, project: str, what: str, *, limit: int, allowed: int
    ) -> DepotPass:
        """What opens the depot to so many bytes of something of an execution; `limit`: of all that its project keeps.

        Raises ConflictError where the fleet has no depot, and UnavailableError where that is away.
        """
        if self._depot is None or not self._depot.expected:
            raise ConflictError("the fleet has no depot (docs/depot.md)")
        depot, address = depot_there(self._depot)
        self._note(who, "data.store", self._told.targets(id_, project, [what]), f"ok, taken from execution {id_}")
        room = allowed + LARGEST_TREE_FORM
        ticket = depot.put_ticket(project=project, account=who.name, room=room, limit=limit, now=wall_time())
        return DepotPass(depot=address, ticket=ticket, allowed=allowed)

    def _note(self, who: Caller, call: str, targets: Sequence[str], result: str) -> None:
        for target in targets:
            self._audit.note(audit_entry(who, call, target, result))


def _joined(names: Sequence[str]) -> Iterator[str]:
    line = ""
    for name in names:
        if line and len(line) + len(name) > _NAMES:
            yield line
            line = ""
        line = f"{line}, {name}" if line else name
    yield line
