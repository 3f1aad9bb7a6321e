"""Operations on what jobs have left: who may see it, and how they get it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from coordinator.clock import wall_time
from coordinator.core.attempts.history import is_whole
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.records import Execution, Job
from coordinator.engine.engine import Engine
from coordinator.service.archive import StoredPast
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

    def __init__(self, operations: Operations, engine: Engine, depot: DepotSide | None, past: StoredPast) -> None:
        self._operations = operations
        self._engine = engine
        self._depot = depot
        self._past = past

    async def list(
        self, caller: Caller, name: str, *, attempt: int = 0, ranks: Collection[int] = (), first: int = 0
    ) -> tuple[JobOutputs, int]:
        """What the ranks of an attempt have left from rank `first` on, and the rank with which the next page begins.

        `attempt` 0: the newest; no `ranks`: all. The second is 0 where there is no other page.
        """
        async with self._operations.begin(caller, "data.outputs", name) as operation:
            asked = await self._engine.query(_reading(operation, name, attempt))
            members = asked.members
            if members is None:
                members = await self._past.executions(asked.job.id, asked.attempt)
            found, following = asked.page(members, ranks, first)
            spec, address = asked.job.spec, None if self._depot is None else self._depot.address
            shown = JobOutputs(
                job=asked.job.id,
                job_name=spec.name,
                attempt=asked.attempt,
                size=spec.size,
                depot=address or "",
                ranks=tuple(self._with_ticket(each, caller, spec.project) for each in found),
            )
            return shown, following

    def _with_ticket(self, each: RankOutputs, caller: Caller, project: str) -> RankOutputs:
        if self._depot is None or self._depot.address is None or not each.outputs.tree:
            return each
        ticket = self._depot.get_ticket(each.outputs.tree, project=project, account=caller.name, now=wall_time())
        return RankOutputs(rank=each.rank, role=each.role, outputs=each.outputs, ticket=ticket)


@dataclass(frozen=True, slots=True)
class _Asked:
    """The attempt of a job that somebody asks for."""

    job: Job
    attempt: int
    now: datetime
    members: Sequence[Execution] | None
    """All executions of it; None: only the store has them."""

    def page(
        self, members: Sequence[Execution], ranks: Collection[int], first: int
    ) -> tuple[tuple[RankOutputs, ...], int]:
        """What ranks from `first` on have left, and the rank with which the next page begins; 0: there is none."""
        left = [
            each
            for each in members
            if each.outputs is not None and each.rank >= first and (not ranks or each.rank in ranks)
        ]
        following = left[OUTPUTS_PAGE].rank if len(left) > OUTPUTS_PAGE else 0
        told = tuple(
            RankOutputs(rank=each.rank, role=self.job.spec.role_of(each.rank).name, outputs=outputs)
            for each in left[:OUTPUTS_PAGE]
            if (outputs := outputs_now(self.job, each, self.now)) is not None
        )
        return told, following


class _Question(Protocol):
    def __call__(self, cluster: Cluster, now: datetime, /) -> _Asked: ...


def _reading(operation: Operation, name: str, attempt: int) -> _Question:
    def read(cluster: Cluster, now: datetime) -> _Asked:
        job = cluster.jobs[resolved(operation, cluster, name)]
        if attempt > job.attempt:
            raise UnknownNameError(f"job {job.id} has no attempt {attempt}; its newest is {job.attempt}")
        number = attempt or job.attempt
        at_hand = is_whole(job, number)
        return _Asked(job, number, now, tuple(cluster.gangs.members(AttemptId(job.id, number))) if at_hand else None)

    return read
