"""The executions of an attempt, which have the logs, and which of their logs will not grow."""

from collections.abc import Collection

from coordinator.core.attempts.history import is_whole
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.records import Execution
from muster.domain.errors import UnknownNameError
from muster.domain.ids import AttemptId, ExecutionId, JobId, execution_id
from muster.domain.jobs.lifecycle import TERMINAL, State


def members(cluster: Cluster, job: JobId, number: int, ranks: frozenset[int]) -> list[Execution]:
    """The executions of an attempt with these ranks, or with any where none is named; raises UnknownNameError."""
    if AttemptId(job, number) not in cluster.attempts:
        newest = newest_attempt(cluster, job)
        raise UnknownNameError(f"job {job} has no attempt {number}; its newest is {newest}")
    size = cluster.jobs[job].spec.size
    beyond = [rank for rank in sorted(ranks) if rank >= size]
    if beyond:
        raise UnknownNameError(f"job {job} has ranks 0 to {size - 1}; there is no rank {beyond[0]}")
    if not is_whole(cluster.jobs[job], number):
        return [_old_member(job, number, rank) for rank in sorted(ranks) or range(size)]
    found = cluster.gangs.members(AttemptId(job, number))
    return [member for member in found if not ranks or member.rank in ranks]


def _old_member(job: JobId, attempt: int, rank: int) -> Execution:
    """Enough of an execution of an old attempt to find its log, which is as complete as it will ever be."""
    return Execution(id=execution_id(job, attempt, rank), job=job, attempt=attempt, rank=rank, log_complete=True)


def newest_attempt(cluster: Cluster, job: JobId) -> int:
    """The number of the newest attempt; 0 for a job that was deleted."""
    return cluster.jobs[job].attempt if job in cluster.jobs else 0


def complete_logs(cluster: Cluster, executions: Collection[ExecutionId]) -> set[ExecutionId]:
    """Executions whose logs will not grow: forgotten, lost, never placed, or complete."""
    return {execution for execution in executions if not _may_grow(cluster.executions.get(execution))}


def _may_grow(execution: Execution | None) -> bool:
    if execution is None or execution.log_complete or execution.state is State.LOST:
        return False
    return execution.state not in TERMINAL or execution.node is not None
