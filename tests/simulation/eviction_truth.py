"""What must be true of evictions: decided by the rules, told in one commit, and a claim is kept while it can be."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.records import Attempt, Change, Job, Put, SeatClaim
from coordinator.core.sharing.standing import PLACES, Standing
from muster.domain.fleet.node import NodeState
from muster.domain.fleet.quota import amounts_of_job
from muster.domain.ids import AttemptId, JobId
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.lifecycle import State
from tests.eviction_invariants import EvictionWitness
from tests.simulation.head_truth import HeadTruth
from tests.simulation.world import Violation


class EvictionTruth:
    """Looks at each turn as it is decided."""

    def __init__(self) -> None:
        self.evicted = 0
        """Attempts that had to make room."""
        self._witness = EvictionWitness()
        self._claims: dict[AttemptId, SeatClaim] = {}
        self._saved: dict[AttemptId, datetime] = {}
        self._head = HeadTruth()

    def loaded(self, cluster: Cluster) -> None:
        """Go on from what is stored."""
        claims = ((attempt.attempt_id, attempt.claim) for attempt in cluster.attempts.values())
        self._claims = {name: claim for name, claim in claims if claim is not None}
        saved = ((attempt.attempt_id, attempt.saved_at) for attempt in cluster.attempts.values())
        self._saved = {name: at for name, at in saved if at is not None}

    def stepped(self, cluster: Cluster, changes: Sequence[Change]) -> None:
        """Hold the evictions of one turn to the rules."""
        records = [each.record for each in changes if isinstance(each, Put)]
        attempts = [each for each in records if isinstance(each, Attempt)]
        victims = [each for each in attempts if each.preempted_for is not None and each.ended_at is None]
        new = [victim for victim in victims if not self._witness.knows(victim.attempt_id)]
        self.evicted += len(new)
        for victim in new:
            if not any(each.job == victim.preempted_for and each.claim is not None for each in attempts):
                raise Violation(f"{victim.job} makes room, and nobody has claimed it", victim.job)
        self._witness.see_attempts(cluster, victims)
        self._witness.see_limits(cluster)
        changed = {each.id for each in records if isinstance(each, Job)}
        evicted = [cluster.jobs[name] for name in dict.fromkeys(victim.job for victim in new)]
        self._check_claims(cluster, attempts, changed, evicted)
        self._check_saved(attempts)
        self._head.stepped(cluster, attempts)

    def _check_saved(self, attempts: Iterable[Attempt]) -> None:
        """Look for a checkpoint that an attempt told of, and that does not count any more."""
        for attempt in attempts:
            known = self._saved.get(attempt.attempt_id)
            if known is not None and (attempt.saved_at is None or attempt.saved_at < known):
                raise Violation(
                    f"{attempt.job} saved at {known}, which is forgotten for {attempt.saved_at}", attempt.job
                )
            if attempt.saved_at is not None:
                self._saved[attempt.attempt_id] = attempt.saved_at

    def _check_claims(
        self, cluster: Cluster, attempts: Iterable[Attempt], changed: set[JobId], evicted: Sequence[Job]
    ) -> None:
        """Look for a job that still waits, and has lost its claim for no reason."""
        for attempt in attempts:
            claim = self._claims.pop(attempt.attempt_id, None)
            if attempt.claim is not None:
                self._claims[attempt.attempt_id] = attempt.claim
            elif claim is not None and attempt.attempt_id in cluster.attempts:
                queued = cluster.gangs.rank(attempt.attempt_id, 0).state is State.QUEUED
                job = cluster.jobs[attempt.job]
                if queued and job.id not in changed and not _is_lost(cluster, job, claim, evicted):
                    raise Violation(f"{attempt.job} has lost its claim for no reason", attempt.job)


def _is_lost(cluster: Cluster, job: Job, claim: SeatClaim, evicted: Sequence[Job]) -> bool:
    """Whether a seat of a claim is not there any more, or its units may not have that much.

    What the same turn has evicted counts: claims are settled before anybody makes room. A window may have closed a node
    of which it is for others.
    """
    windows = cluster.load.windows
    theirs = {node for each in windows if each.project != job.spec.project for node in windows.nodes_of(each)}
    for seat in claim.seats:
        if seat.node in theirs:
            return True
        node = cluster.nodes.get(seat.node)
        if node is None or node.cordon is not None or cluster.presence[seat.node].state is NodeState.LOST:
            return True
        if not {gpu.uuid for gpu in node.inventory.gpus if gpu.usable}.issuperset(seat.gpus):
            return True
    units, pool = cluster.unit_load.units, cluster.unit_load.pool_of(job)
    path, size = units.path(job.spec.project, pool), amounts_of_job(job.spec)
    fixed = job.job_class is JobClass.GUARANTEED
    return any(
        size[place]
        and (
            each.load(place) + _was_held(cluster, each, place, evicted) + size[place] > each.entitlement.limit[place]
            or (fixed and each.fixed[place] + size[place] > each.entitlement.quota[place])
        )
        for each in path
        for place in PLACES
    )


def _was_held(cluster: Cluster, standing: Standing, place: int, evicted: Sequence[Job]) -> int:
    """What jobs that this turn has evicted counted for in a unit before."""
    units = cluster.unit_load.units
    return sum(
        amounts_of_job(job.spec)[place]
        for job in evicted
        if any(each is standing for each in units.path(job.spec.project, cluster.unit_load.pool_of(job)))
    )
