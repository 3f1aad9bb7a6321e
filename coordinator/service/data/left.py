"""Operations on what jobs have left: who may see it, and how they get it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from coordinator.clock import wall_time
from coordinator.core.attempts.history import is_whole
from coordinator.core.attempts.storing_again import why_not
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.data_events import OutputsRetried
from coordinator.core.records import Execution, Job
from coordinator.engine.engine import Engine
from coordinator.service.archive import StoredPast
from coordinator.service.causes import answer_to
from coordinator.service.data.trees import DepotSide
from coordinator.service.finding import resolved
from coordinator.service.operations import Operation, Operations
from coordinator.trust.caller import Caller
from coordinator.views.outputs import outputs_now, outputs_store
from muster.domain.data.outputs import (
    RETRIED_STAGES,
    JobOutputs,
    OutputsRetry,
    RankNotRetried,
    RankOutputs,
)
from muster.domain.errors import ConflictError, UnknownNameError
from muster.domain.ids import AttemptId
from muster.domain.quantity import counted

OUTPUTS_PAGE = 500
"""Ranks whose outputs are told in one answer."""

NOT_RETRIED_TOLD = 20
"""Ranks of which it is told why their outputs cannot be stored again."""


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

    async def retry(self, caller: Caller, name: str, *, attempt: int = 0, ranks: Collection[int] = ()) -> OutputsRetry:
        """Have outputs of an attempt stored again that are not in the depot; whose they are, and whose cannot be.

        `attempt` and `ranks` are as for `list`. Where it goes on already, nothing changes. Raises ConflictError where
        there are none that can be stored again.
        """

        def find(cluster: Cluster, now: datetime) -> tuple[_Asked, list[int], list[RankNotRetried]]:
            asked = read(cluster, now)
            wanted = [each for each in asked.members or () if each.rank in ranks or (not ranks and _is_left(each))]
            reasons = [(each.rank, why_not(cluster, each)) for each in wanted]
            refused = [RankNotRetried(rank=rank, why=why) for rank, why in reasons if why is not None]
            return asked, [rank for rank, why in reasons if why is None], refused

        async with self._operations.begin(caller, "outputs.retry", name) as operation:
            read = _reading(operation, name, attempt)
            asked, again, refused = await self._engine.query(find)
            job = asked.job
            if asked.members is None:
                raise ConflictError(f"attempt {asked.attempt} of job {job.id} is too old: only its results are known")
            if not again:
                why = f"rank {refused[0].rank}: {refused[0].why}" if refused else "none lie on a node alone"
                raise ConflictError(f"attempt {asked.attempt} of job {job.id} has no outputs to store again ({why})")
            operation.target = f"{job.id} attempt {asked.attempt}, {counted(len(again), 'rank')}"
            attempt_id = AttemptId(job.id, asked.attempt)
            order = OutputsRetried(attempt=attempt_id, ranks=tuple(again), cause=operation.cause)
            await answer_to(self._engine, order)
            return OutputsRetry(
                job=job.id,
                job_name=job.spec.name,
                attempt=asked.attempt,
                ranks=tuple(again),
                refused=tuple(refused[:NOT_RETRIED_TOLD]),
            )

    def _with_ticket(self, each: RankOutputs, caller: Caller, project: str) -> RankOutputs:
        if self._depot is None or self._depot.address is None or not each.outputs.tree:
            return each
        ticket = self._depot.get_ticket(each.outputs.tree, project=project, account=caller.name, now=wall_time())
        return replace(each, ticket=ticket)


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
            RankOutputs(
                rank=each.rank,
                role=self.job.spec.role_of(each.rank).name,
                outputs=outputs,
                store=outputs_store(self.job, each) if outputs.tree else "",
            )
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


def _is_left(execution: Execution) -> bool:
    """Whether outputs of an execution are not in the depot, but could be."""
    return execution.outputs is not None and execution.outputs.stage in RETRIED_STAGES
