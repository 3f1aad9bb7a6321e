"""The checkpoint with which an attempt begins, and what each of its executions finds of that."""

from coordinator.core.checkpoint_part import AttemptCheckpoints
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.cluster.saved.checkpoints import first_of_role
from coordinator.core.records import Execution
from muster.domain.data.checkpoint import CheckpointId, CheckpointToRestore, NamedTree
from muster.domain.ids import JobId


def choose(cluster: Cluster, job: JobId) -> AttemptCheckpoints:
    """What an attempt that is placed begins with: the newest whole checkpoint of its job that is not bad."""
    good = cluster.gangs.checkpoints.good(job)
    return AttemptCheckpoints(restores=good[0].id if good else None)


def for_execution(cluster: Cluster, execution: Execution) -> CheckpointToRestore | None:
    """What an execution finds before its user code starts; None: nothing."""
    restores = cluster.attempts[execution.attempt_id].checkpoints.restores
    saved = None if restores is None else cluster.gangs.checkpoints.get(execution.job, restores)
    spec = cluster.jobs[execution.job].spec
    if restores is None or saved is None or spec.role_of(execution.rank).checkpoint is None:
        return None
    ranks = dict.fromkeys((execution.rank, first_of_role(spec, execution.rank)))
    parts = [saved.parts[rank] for rank in ranks if rank in saved.parts]
    trees = dict.fromkeys(NamedTree(tree=part.tree, size=part.size) for part in parts)
    return CheckpointToRestore(attempt=restores.attempt, name=restores.name, trees=tuple(trees))


def in_use(cluster: Cluster, job: JobId) -> CheckpointId | None:
    """The checkpoint with which the newest attempt of a job that has not ended began; None: with none."""
    if cluster.jobs[job].ended_at is not None:
        return None
    return cluster.newest_attempt(job).checkpoints.restores
