"""How nodes are given the secrets of the executions that they run."""

from collections.abc import Sequence

from coordinator.engine.engine import Engine
from coordinator.rpc.agents.deliveries import Deliveries
from coordinator.rpc.agents.entitled import entitled_to
from coordinator.service.operations import audit_entry
from coordinator.trust.audit.log import AuditLog
from coordinator.trust.caller import Caller
from coordinator.trust.secrets.secrets import Secrets
from muster.domain.fleet.secret import DeliveredSecret
from muster.domain.ids import ExecutionId


class SecretDelivery:
    """Gives a node the secrets of its own executions, once the audit log says so."""

    def __init__(self, engine: Engine, secrets: Secrets, audit: AuditLog) -> None:
        self._engine = engine
        self._secrets = secrets
        self._audit = audit
        self._told = Deliveries()

    async def delivered(self, who: Caller, id_: ExecutionId, *, for_data: bool) -> Sequence[DeliveredSecret]:
        """The secrets of an execution that is placed on the node that asks, and not over; or those for its data."""
        project, role = await entitled_to(self._engine, who, id_, "secrets")
        delivered = await (self._secrets.for_data if for_data else self._secrets.delivered)(project, role)
        for target in self._told.targets(id_, project, [each.name for each in delivered]):
            self._audit.note(audit_entry(who, "secrets.deliver", target, f"ok, given to execution {id_}"))
        await self._audit.kept()  # nobody is given a value of which no trace is left
        return delivered
