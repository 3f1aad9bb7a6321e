"""Operations on what jobs have left: who may see it, and how they get it."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from coordinator.clock import wall_time
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.records import Execution, Job
from coordinator.engine.engine import Engine
from coordinator.service.data.trees import DepotSide
from coordinator.service.finding import resolved
from coordinator.service.operations import Operation, Operations
from coordinator.trust.caller import Caller
from coordinator.views.outputs import outputs_now
from muster.domain.data.outputs import JobOutputs, RankOutputs
from muster.domain.errors import UnknownNameError
from muster.domain.ids import AttemptId

OUTPUTS_PAGE = 500
"""Ranks whose outputs are told in one answer."""


class OutputOperations:
    """What callers may do with what jobs have left."""

    def __init__(self, operations: Operations, engine: Engine, depot: DepotSide | None) -> None:
        self._operations = operations
        self._engine = engine
        self._depot = depot

    async def list(
        self, caller: Caller, name: str, *, attempt: int = 0, ranks: Collection[int] = (), first: int = 0
    ) -> tuple[JobOutputs, int]:
        """What the ranks of an attempt have left from rank `first` on, and the rank with which the next page begins.

        `attempt` 0: the newest; no `ranks`: all. The second is 0 where there is no other page.
        """
        async with self._operations.begin(caller, "data.outputs", name) as operation:
            found, following = await self._engine.query(_reading(operation, name, attempt, ranks, first))
            address = None if self._depot is None else self._depot.address
            told = tuple(self._with_ticket(each, caller, found.project) for each in found.members)
            shown = JobOutputs(
                job=found.job,
                job_name=found.job_name,
                attempt=found.attempt,
                size=found.size,
                depot=address or "",
                ranks=told if address is not None else found.members,
            )
            return shown, following

    def _with_ticket(self, each: RankOutputs, caller: Caller, project: str) -> RankOutputs:
        if self._depot is None or self._depot.address is None or not each.outputs.tree:
            return each
        ticket = self._depot.get_ticket(each.outputs.tree, project=project, account=caller.name, now=wall_time())
        return RankOutputs(rank=each.rank, role=each.role, outputs=each.outputs, ticket=ticket)


class _Found:
    """What was read of a job."""

    def __init__(self, job: Job, attempt: int, members: Sequence[Execution], now: datetime) -> None:
        spec = job.spec
        self.job, self.attempt = job.id, attempt
        self.job_name, self.project, self.size = spec.name, spec.project, spec.size
        self.members = tuple(
            RankOutputs(rank=each.rank, role=spec.role_of(each.rank).name, outputs=outputs)
            for each in members
            if (outputs := outputs_now(job, each, now)) is not None
        )


class _Question(Protocol):
    def __call__(self, cluster: Cluster, now: datetime, /) -> tuple[_Found, int]: ...


def _reading(operation: Operation, name: str, attempt: int, ranks: Collection[int], first: int) -> _Question:
    def read(cluster: Cluster, now: datetime) -> tuple[_Found, int]:
        job = cluster.jobs[resolved(operation, cluster, name)]
        if attempt > job.attempt:
            raise UnknownNameError(f"job {job.id} has no attempt {attempt}; its newest is {job.attempt}")
        attempt_id = AttemptId(job.id, attempt or job.attempt)
        left = [
            each
            for each in cluster.gangs.members(attempt_id)
            if each.outputs is not None and each.rank >= first and (not ranks or each.rank in ranks)
        ]
        following = left[OUTPUTS_PAGE].rank if len(left) > OUTPUTS_PAGE else 0
        return _Found(job, attempt_id.number, left[:OUTPUTS_PAGE], now), following

    return read
