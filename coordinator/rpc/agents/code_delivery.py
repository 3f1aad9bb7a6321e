"""How the nodes of a job get its code: one of them fetches it from its repository, all have it from the depot."""

from dataclasses import replace
from datetime import datetime

from coordinator.clock import wall_time
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.events import CodeFetched
from coordinator.engine.engine import Engine
from coordinator.rpc.agents.deliveries import Deliveries
from coordinator.rpc.agents.entitled import entitled_to
from coordinator.service.data.trees import DepotSide, depot_there
from coordinator.service.operations import audit_entry
from coordinator.trust.audit.log import AuditLog
from coordinator.trust.caller import Caller
from muster.domain.data.code import JobCode
from muster.domain.data.tree import LARGEST_TREE_FORM
from muster.domain.data.upload import CODE_LIMIT, CodePass, DepotPass
from muster.domain.errors import ConflictError, InvalidJobError, UnknownNameError
from muster.domain.ids import ExecutionId
from muster.domain.jobs.job import JobSpec


class CodeDelivery:
    """Shows the nodes of a job the way to its code, and no other node."""

    def __init__(self, engine: Engine, depot: DepotSide | None, audit: AuditLog) -> None:
        self._engine = engine
        self._depot = depot
        self._audit = audit
        self._told = Deliveries()

    async def shown(self, who: Caller, id_: ExecutionId) -> CodePass:
        """The code of an execution and what opens the depot for it; raises UnavailableError where no depot is there.

        Code that nobody has fetched yet is fetched by the node of the first rank that has it; all others wait.
        """
        project, role = await entitled_to(self._engine, who, id_, "code")
        code = role.code
        if code is None:
            raise UnknownNameError(f"the job of execution {id_} brings no code along")
        if code.is_awaited:
            return await self._awaited(who, id_, project, code)
        depot, address = depot_there(self._depot)
        self._note(who, "data.deliver", project, code.tree, (id_, "given to"))
        ticket = depot.get_ticket(code.tree, project=project, account=who.name, now=wall_time())
        return CodePass(code=code, depot=DepotPass(depot=address, ticket=ticket))

    async def fetched(self, who: Caller, id_: ExecutionId, found: JobCode) -> CodePass:
        """Note what a node has fetched of the code of an execution, once that is durable; then what counts.

        Raises InvalidJobError for what is not the code of its job, or is not in the depot.
        """
        _, role = await entitled_to(self._engine, who, id_, "code")
        code = role.code
        if code is not None and code.is_awaited:
            asked = code.git
            assert asked is not None
            if found.git is None or replace(found.git, commit="") != replace(asked, commit=""):
                raise InvalidJobError(f"that is not the code of the job of execution {id_}")
            if found.size > LARGEST_TREE_FORM:
                raise InvalidJobError(f"the tree {found.tree} is written in more than {LARGEST_TREE_FORM} bytes")
            if asked.commit not in {"", found.git.commit}:
                raise InvalidJobError(f"the job of execution {id_} wants the commit {asked.commit}")
            if await self._engine.query(lambda cluster, _: _fetcher(cluster, id_)) != id_:
                raise InvalidJobError(f"execution {id_} is not the one that fetches the code of its job")
            depot, _ = depot_there(self._depot)
            if await depot.keep([found.tree]):
                raise InvalidJobError(f"the depot does not have the tree {found.tree}, or not all of it")
            job = await self._engine.query(lambda cluster, _: cluster.executions[id_].job)
            await self._engine.apply(CodeFetched(job=job, asked=asked, found=found))
        return await self.shown(who, id_)

    async def _awaited(self, who: Caller, id_: ExecutionId, project: str, code: JobCode) -> CodePass:
        def read(cluster: Cluster, _: datetime) -> tuple[bool, int]:
            return _fetcher(cluster, id_) == id_, cluster.projects[project].storage

        fetches, limit = await self._engine.query(read)
        if not fetches:
            return CodePass(code=code, depot=None)
        if self._depot is None or not self._depot.expected:
            raise ConflictError("the fleet has no depot (docs/depot.md), which code from a repository goes to")
        depot, address = depot_there(self._depot)
        self._note(who, "data.store", project, "code", (id_, "taken from"))
        room = CODE_LIMIT + LARGEST_TREE_FORM
        ticket = depot.put_ticket(project=project, account=who.name, room=room, limit=limit, now=wall_time())
        return CodePass(code=code, depot=DepotPass(depot=address, ticket=ticket, allowed=CODE_LIMIT))

    def _note(self, who: Caller, call: str, project: str, what: str, whose: tuple[ExecutionId, str]) -> None:
        id_, way = whose
        for target in self._told.targets(id_, project, [what]):
            self._audit.note(audit_entry(who, call, target, f"ok, {way} execution {id_}"))


def _fetcher(cluster: Cluster, id_: ExecutionId) -> ExecutionId | None:
    """The execution of the same attempt whose node fetches the code of this one; None: there is none any more."""
    execution = cluster.executions.get(id_)
    if execution is None:
        return None
    spec = cluster.jobs[execution.job].spec
    return cluster.gangs.rank(execution.attempt_id, _first_with_code(spec, execution.rank)).id


def _first_with_code(spec: JobSpec, rank: int) -> int:
    """The first rank that has the same code as this one."""
    code, first = spec.role_of(rank).code, 0
    for role in spec.roles:
        if role.code == code:
            return first
        first += role.count
    return rank
