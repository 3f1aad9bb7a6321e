"""How nodes are given the secrets of the executions that they run."""

from collections.abc import Sequence
from datetime import datetime

from coordinator.core.cluster.cluster import Cluster
from coordinator.engine.engine import Engine
from coordinator.rpc.agents.deliveries import Deliveries
from coordinator.service.operations import audit_entry
from coordinator.trust.audit.log import AuditLog
from coordinator.trust.caller import Caller
from coordinator.trust.secrets.secrets import Secrets
from muster.domain.errors import ConflictError, PermissionDeniedError, UnknownNameError
from muster.domain.fleet.secret import DeliveredSecret
from muster.domain.ids import ExecutionId
from muster.domain.jobs.job import Role
from muster.domain.jobs.lifecycle import TERMINAL


class SecretDelivery:
    """Gives a node the secrets of its own executions, once the audit log says so."""

    def __init__(self, engine: Engine, secrets: Secrets, audit: AuditLog) -> None:
        self._engine = engine
        self._secrets = secrets
        self._audit = audit
        self._told = Deliveries()

    async def delivered(self, who: Caller, id_: ExecutionId) -> Sequence[DeliveredSecret]:
        """The secrets of an execution that is placed on the node that asks, and not over."""

        def entitled(cluster: Cluster, _: datetime) -> tuple[str, Role]:
            execution = cluster.executions.get(id_)
            if execution is None:
                raise UnknownNameError(f"there is no execution {id_}")
            if execution.node is None or not who.speaks_for(execution.node):
                raise PermissionDeniedError(f"execution {id_} is not on {who.name or 'the node of a stranger'}")
            if execution.state in TERMINAL:
                raise ConflictError(f"execution {id_} is over ({execution.state}); it gets no secrets any more")
            spec = cluster.jobs[execution.job].spec
            return spec.project, spec.role_of(execution.rank)

        project, role = await self._engine.query(entitled)
        delivered = await self._secrets.delivered(project, role)
        for target in self._told.targets(id_, project, [each.name for each in delivered]):
            self._audit.note(audit_entry(who, "secrets.deliver", target, f"ok, given to execution {id_}"))
        await self._audit.kept()  # nobody is given a value of which no trace is left
        return delivered
