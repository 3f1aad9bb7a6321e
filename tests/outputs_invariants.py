"""What must hold of outputs that are on their way, and of the ends of their jobs; each check is a sentence."""

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.records import Job
from muster.domain.ids import AttemptId
from muster.domain.jobs.lifecycle import TERMINAL, JobPhase


def _who_stores_has_ended(cluster: Cluster, job: Job) -> None:
    """All that an execution had is free while its outputs are stored, and its job waits for them."""
    every = [each for n in range(1, job.attempt + 1) for each in cluster.gangs.members(AttemptId(job.id, n))]
    storing = [each for each in every if each.stores]
    for each in storing:
        assert each.state in TERMINAL, f"{each.id} stores outputs and holds what it had"
    assert cluster.gangs.storing(job.id) == len(storing), f"{job.id}: executions that store"
    over = cluster.newest_attempt(job.id).ended_at is not None
    assert (job.ended_at is not None) == (over and not storing), f"{job.id} does not end when all of it has"
    saves = any(role.checkpoint is not None for role in job.spec.roles)
    waited = saves or any(each.outputs is not None for each in every)
    assert waited or cluster.newest_attempt(job.id).ended_at == job.ended_at, f"{job.id} does not end with its attempt"
    phase = cluster.phase(job.id)
    assert phase.ended == (over and not storing), f"{job.id} is {phase}, its executions say otherwise"
    assert (phase is JobPhase.STORING) == (over and bool(storing)), f"{job.id} is {phase}"


def a_job_ends_with_its_last_execution_and_says_why(cluster: Cluster, job: Job) -> None:
    attempt = cluster.newest_attempt(job.id)
    over = all(member.state in TERMINAL for member in cluster.gangs.members(job.attempt_id))
    assert (attempt.ended_at is not None) == over, f"{attempt.attempt_id} and its executions do not end together"
    _who_stores_has_ended(cluster, job)
    phase = cluster.phase(job.id, outputs=False)
    if phase is JobPhase.FAILED:
        assert attempt.failure is not None, f"{job.id} failed and nobody knows why"
    if phase is JobPhase.SUCCEEDED:
        assert attempt.failure is None, f"{job.id} succeeded and failed: {attempt.failure}"
    assert over is False or not job.delete_when_ended, f"{job.id} was to be deleted"
