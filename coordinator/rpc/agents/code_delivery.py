"""How the nodes of a job get its code: one of them fetches it from its repository, all have it from the depot."""

from dataclasses import replace
from datetime import datetime

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.data_events import CodeFetched
from coordinator.engine.engine import Engine
from coordinator.rpc.agents.deliveries import DepotTickets
from coordinator.rpc.agents.entitled import entitled_to
from coordinator.service.data.trees import DepotSide, depot_there
from coordinator.trust.audit.log import AuditLog
from coordinator.trust.caller import Caller
from muster.domain.data.code import JobCode
from muster.domain.data.tree import LARGEST_TREE_FORM
from muster.domain.data.upload import CODE_LIMIT, CodePass
from muster.domain.errors import InvalidJobError, UnknownNameError
from muster.domain.ids import ExecutionId, JobId
from muster.domain.jobs.job import JobSpec


class CodeDelivery:
    """Shows the nodes of a job the way to its code, and no other node."""

    def __init__(self, engine: Engine, depot: DepotSide | None, audit: AuditLog) -> None:
        self._engine = engine
        self._depot = depot
        self._tickets = DepotTickets(depot, audit)

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
        return CodePass(code=code, depot=self._tickets.to_fetch(who, id_, project, code.tree))

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
            job = await self._engine.query(lambda cluster, _: _job_to_fetch_for(cluster, id_))
            if job is None:
                raise InvalidJobError(f"execution {id_} is not the one that fetches the code of its job")
            depot, _ = depot_there(self._depot)
            if await depot.keep([found.tree]):
                raise InvalidJobError(f"the depot does not have the tree {found.tree}, or not all of it")
            await self._engine.apply(CodeFetched(job=job, asked=asked, found=found))
        return await self.shown(who, id_)

    async def _awaited(self, who: Caller, id_: ExecutionId, project: str, code: JobCode) -> CodePass:
        def read(cluster: Cluster, _: datetime) -> tuple[bool, int]:
            return _job_to_fetch_for(cluster, id_) is not None, cluster.projects[project].storage

        fetches, limit = await self._engine.query(read)
        if not fetches:
            return CodePass(code=code, depot=None)
        depot = self._tickets.to_store(who, id_, project, "code", limit=limit, allowed=CODE_LIMIT)
        return CodePass(code=code, depot=depot)


def _job_to_fetch_for(cluster: Cluster, id_: ExecutionId) -> JobId | None:
    """The job whose code the node of an execution fetches; None: that of another one does, or the execution is gone."""
    execution = cluster.executions.get(id_)
    if execution is None:
        return None
    first = _first_with_code(cluster.jobs[execution.job].spec, execution.rank)
    return execution.job if first == execution.rank else None


def _first_with_code(spec: JobSpec, rank: int) -> int:
    """The first rank that has the code of the same repository as this one."""
    code = spec.role_of(rank).code
    for role, ranks in spec.ranks_by_role():
        if code is not None and role.code is not None and role.code.git == code.git:
            return ranks.start
    return rank
