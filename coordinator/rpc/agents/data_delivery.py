"""How nodes are shown the way to the data of the executions that they run."""

from collections.abc import Mapping
from dataclasses import replace

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.cluster.saved.checkpoints import savers
from coordinator.core.records import Execution
from coordinator.core.turn.restoring import for_execution
from coordinator.engine.engine import Engine
from coordinator.rpc.agents.deliveries import Deliveries, DepotTickets
from coordinator.rpc.agents.entitled import entitled_to
from coordinator.service.data.trees import DepotSide, input_trees
from coordinator.service.operations import audit_entry
from coordinator.trust.audit.log import AuditLog
from coordinator.trust.caller import Caller
from coordinator.trust.secrets.secrets import Secrets
from coordinator.views.checkpoints import checkpoint_place, restored_place
from coordinator.views.outputs import outputs_store, wanted_outputs
from muster.domain.data.checkpoint import CheckpointPass, CheckpointPlace
from muster.domain.data.output_terms import OutputTerms
from muster.domain.data.outputs import LARGEST_OUTPUTS, OutputsPass
from muster.domain.data.upload import DepotPass
from muster.domain.errors import PermissionDeniedError, UnknownNameError
from muster.domain.ids import ExecutionId
from muster.domain.jobs.job import JobSpec


class DataDelivery:
    """Gives a node tickets for inputs and checkpoints of its own executions, and for what they leave, and no other."""

    def __init__(self, engine: Engine, depot: DepotSide | None, secrets: Secrets, audit: AuditLog) -> None:
        self._engine = engine
        self._tickets = DepotTickets(depot, audit)
        self._secrets = secrets
        self._audit = audit
        self._told = Deliveries()

    async def shown(self, who: Caller, id_: ExecutionId, tree: str) -> DepotPass:
        """What opens the depot for a tree of an execution's inputs; raises UnavailableError where no depot is there."""
        project, role = await entitled_to(self._engine, who, id_, "inputs")
        if tree not in input_trees(role):
            raise UnknownNameError(f"no input of execution {id_} is the tree {tree}")
        return self._tickets.to_fetch(who, id_, project, tree)

    async def restored(self, who: Caller, id_: ExecutionId, tree: str) -> CheckpointPass:
        """What opens the depot, and a store, for a tree of the checkpoint that an execution restores."""
        project, _ = await entitled_to(self._engine, who, id_, "checkpoint")
        if not await self._engine.query(lambda cluster, _: _restores(cluster, id_, tree)):
            raise UnknownNameError(f"execution {id_} restores no tree {tree[:80]}")
        place = await self._engine.query(lambda cluster, _: restored_place(cluster, cluster.executions[id_], tree))
        depot = self._tickets.to_fetch(who, id_, project, tree)
        return CheckpointPass(depot=depot, place=await self._opened(who, id_, project, place))

    async def taking(self, who: Caller, id_: ExecutionId) -> OutputsPass:
        """What opens the depot to those outputs of an execution that are wanted, also once it is over.

        Raises UnavailableError where the depot is away or nobody knows yet whether they are wanted, and ConflictError
        where the fleet has no depot, or what opens the store to which they go is not there any more.
        """
        project, limit, terms = await self._engine.query(lambda cluster, _: _outputs_of(cluster, who, id_))
        if terms is None:
            return OutputsPass(depot=None)
        if terms.to:
            opens = await self._values(who, id_, project, terms.secret)
            takes_list = self._tickets.to_store(who, id_, project, "outputs", limit=limit, allowed=limit)
            depot = replace(takes_list, allowed=LARGEST_OUTPUTS if terms.limit is None else terms.limit)
            return OutputsPass(depot=depot, terms=terms, opens=opens)
        depot = self._tickets.to_store(who, id_, project, "outputs", limit=limit, allowed=limit)
        return OutputsPass(depot=depot, terms=terms)

    async def saving(self, who: Caller, id_: ExecutionId) -> CheckpointPass:
        """What opens the depot, and a store, to checkpoints of an execution, also once it is over.

        Raises as `taking` does.
        """
        project, limit, place = await self._engine.query(lambda cluster, _: _saves_into(cluster, who, id_))
        place = await self._opened(who, id_, project, place)
        depot = self._tickets.to_store(who, id_, project, "checkpoints", limit=limit, allowed=limit)
        if place is not None:
            depot = replace(depot, allowed=LARGEST_OUTPUTS)  # the depot takes but the list
        return CheckpointPass(depot=depot, place=place)

    async def _opened(
        self, who: Caller, id_: ExecutionId, project: str, place: CheckpointPlace | None
    ) -> CheckpointPlace | None:
        """The same with what opens it."""
        return place and replace(place, opens=await self._values(who, id_, project, place.secret))

    async def _values(self, who: Caller, id_: ExecutionId, project: str, secret: str) -> Mapping[str, bytes]:
        """The values of a secret that opens a store, once the audit log has it that they were given away."""
        opens = (await self._secrets.for_outputs(project, secret)).values
        for target in self._told.targets(id_, project, [secret]):
            self._audit.note(audit_entry(who, "secrets.deliver", target, f"ok, given to execution {id_}"))
        await self._audit.kept()  # nobody is given a value of which no trace is left
        return opens


def _restores(cluster: Cluster, id_: ExecutionId, tree: str) -> bool:
    """Whether a tree is a part of what an execution finds."""
    execution = cluster.executions.get(id_)
    found = None if execution is None else for_execution(cluster, execution)
    return found is not None and tree in {each.tree for each in found.trees}


def _outputs_of(cluster: Cluster, who: Caller, id_: ExecutionId) -> tuple[str, int, OutputTerms | None]:
    """The project of an execution of the node that asks, what it may keep in all, and which of its outputs are wanted.

    None as the last: none of them.
    """
    execution, spec = _placed(cluster, who, id_)
    terms = wanted_outputs(execution, spec.role_of(execution.rank).outputs)
    if terms is not None and terms.to:
        terms = replace(terms, to=outputs_store(cluster.jobs[execution.job], execution))
    return spec.project, cluster.projects[spec.project].storage, terms


def _saves_into(cluster: Cluster, who: Caller, id_: ExecutionId) -> tuple[str, int, CheckpointPlace | None]:
    """The project of an execution of the node that asks and saves, what it may keep in all, and where in a store."""
    execution, spec = _placed(cluster, who, id_)
    if execution.rank not in savers(spec):
        raise UnknownNameError(f"execution {id_} saves no checkpoints")
    return spec.project, cluster.projects[spec.project].storage, checkpoint_place(cluster, execution)


def _placed(cluster: Cluster, who: Caller, id_: ExecutionId) -> tuple[Execution, JobSpec]:
    """An execution of the node that asks, and its job."""
    execution = cluster.executions.get(id_)
    if execution is None:
        raise UnknownNameError(f"there is no execution {id_}")
    if execution.node is None or not who.speaks_for(execution.node):
        raise PermissionDeniedError(f"execution {id_} is not on {who.name or 'the node of a stranger'}")
    return execution, cluster.jobs[execution.job].spec
