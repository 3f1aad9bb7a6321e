"""Whether a node may have what belongs to an execution."""

from datetime import datetime

from coordinator.core.cluster.cluster import Cluster
from coordinator.engine.engine import Engine
from coordinator.trust.caller import Caller
from muster.domain.errors import ConflictError, PermissionDeniedError, UnknownNameError
from muster.domain.ids import ExecutionId
from muster.domain.jobs.job import Role
from muster.domain.jobs.lifecycle import TERMINAL


async def entitled_to(engine: Engine, who: Caller, id_: ExecutionId, what: str) -> tuple[str, Role]:
    """Project and role of an execution that is placed on the node that asks, and not over.

    Raises UnknownNameError, PermissionDeniedError or ConflictError.
    """

    def asked(cluster: Cluster, _: datetime) -> tuple[str, Role]:
        execution = cluster.executions.get(id_)
        if execution is None:
            raise UnknownNameError(f"there is no execution {id_}")
        if execution.node is None or not who.speaks_for(execution.node):
            raise PermissionDeniedError(f"execution {id_} is not on {who.name or 'the node of a stranger'}")
        if execution.state in TERMINAL:
            raise ConflictError(f"execution {id_} is over ({execution.state}); it gets no {what} any more")
        spec = cluster.jobs[execution.job].spec
        return spec.project, spec.role_of(execution.rank)

    return await engine.query(asked)
