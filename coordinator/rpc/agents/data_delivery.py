"""How nodes are shown the way to the data of the executions that they run."""

from coordinator.clock import wall_time
from coordinator.engine.engine import Engine
from coordinator.rpc.agents.deliveries import Deliveries
from coordinator.rpc.agents.entitled import entitled_to
from coordinator.service.data.trees import DepotSide, depot_there
from coordinator.service.operations import audit_entry
from coordinator.trust.audit.log import AuditLog
from coordinator.trust.caller import Caller
from muster.domain.data.upload import DepotPass
from muster.domain.errors import UnknownNameError
from muster.domain.ids import ExecutionId


class DataDelivery:
    """Gives a node tickets for the code of its own executions, and no other."""

    def __init__(self, engine: Engine, depot: DepotSide | None, audit: AuditLog) -> None:
        self._engine = engine
        self._depot = depot
        self._audit = audit
        self._told = Deliveries()

    async def shown(self, who: Caller, id_: ExecutionId) -> DepotPass:
        """What opens the depot for the code of an execution. Raises UnavailableError where no depot is there."""
        project, role = await entitled_to(self._engine, who, id_, "code")
        if role.code is None:
            raise UnknownNameError(f"the job of execution {id_} brings no code along")
        depot, address = depot_there(self._depot)
        for target in self._told.targets(id_, project, [role.code.tree]):
            self._audit.note(audit_entry(who, "data.deliver", target, f"ok, given to execution {id_}"))
        ticket = depot.get_ticket(role.code.tree, project=project, account=who.name, now=wall_time())
        return DepotPass(depot=address, ticket=ticket)
