"""What must hold of claims and evictions after every step; each check is a sentence."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import timedelta

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.placement.node_capacity import total_capacity
from coordinator.core.records import Attempt, Execution, Job
from coordinator.core.sharing.standing import PLACES, Tally
from muster.domain.fleet.quota import UNLIMITED_AMOUNT, amounts_of_job
from muster.domain.gangs.plan import Goal
from muster.domain.ids import AttemptId, GpuUuid, JobId, NodeId
from muster.domain.jobs.failure import FailureKind
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.lifecycle import State
from tests.portion_invariants import claimed_on, no_gpu_is_given_beyond_what_it_has

USUAL_MIN_RUNTIME = timedelta(minutes=10)
MOST_DOUBLINGS = 2


def claimed_gpus(cluster: Cluster, node: NodeId) -> Sequence[GpuUuid] | None:
    """The GPUs of a node of which something is claimed; None: nobody claims anything there."""
    claimed = claimed_on(cluster, node)
    no_gpu_is_given_beyond_what_it_has("claimed", node, cluster.nodes[node].inventory.gpus, claimed)
    return [gpu for _, gpus in claimed for gpu in gpus] if claimed else None


def who_stays_leaves_room_for_claims(cluster: Cluster, node: NodeId) -> None:
    """What is claimed of a node is free, or held by those alone that were ordered to stop."""
    if claimed_gpus(cluster, node) is None:
        return  # those who run go on, though the node may have less by now than they were given
    everything = total_capacity(cluster.nodes[node], cluster.records.pools.values())
    stays = [each for each in cluster.load.planned(node) if each.id in cluster.load.used(node).executions]
    stays = [each for each in stays if each.state is not State.STOPPING]
    held = [(cluster.jobs[each.job].spec.role_of(each.rank).resources, each.gpus) for each in stays]
    held += claimed_on(cluster, node)
    needs = [need for need, _ in held]
    no_gpu_is_given_beyond_what_it_has("claimed and kept by who stays", node, everything.gpus, held)
    assert sum(need.cpu_millis for need in needs) <= everything.cpu_millis, f"CPUs of {node} are claimed and taken"
    assert sum(need.memory or 0 for need in needs) <= everything.memory, f"memory of {node} is claimed and taken"


def add_claims(cluster: Cluster, sums: dict[tuple[str, str], Counter[Tally]]) -> None:
    """Count what is claimed for jobs that are queued."""
    load = cluster.unit_load
    for attempt in cluster.attempts.values():
        if attempt.claim is not None:
            job = cluster.jobs[attempt.job]
            gpus = amounts_of_job(job.spec).gpus
            for unit in load.units.get(job.spec.project).line():
                counted = sums.setdefault((unit.name, load.pool_of(job)), Counter())
                counted[Tally.CLAIMED] += gpus
                counted[Tally.FIXED] += gpus * (job.job_class is JobClass.GUARANTEED)


def only_who_is_queued_claims_seats(attempt: Attempt, members: Sequence[Execution]) -> None:
    """A claim is for executions that have no seats yet, one seat each."""
    if attempt.claim is not None:
        assert all(member.state is State.QUEUED for member in members), f"{attempt.attempt_id} claims what it has"
        ranks = [seat.rank for seat in attempt.claim.seats]
        assert ranks == [member.rank for member in members], f"{attempt.attempt_id} claims other seats than it needs"


def an_eviction_is_told_as_one(job: Job, attempt: Attempt) -> None:
    """Whoever was evicted was ordered to stop, and ends with that reason."""
    if attempt.preempted_for is not None:
        assert attempt.goal is Goal.STOP, f"{attempt.attempt_id} was evicted and goes on"
        assert attempt.failure is not None, f"{attempt.attempt_id} was evicted without a reason"
        assert attempt.failure.kind is FailureKind.PREEMPTED, f"{attempt.attempt_id} was evicted: {attempt.failure}"
        assert job.evictions, f"{job.id} was evicted and does not count it"


class EvictionWitness:
    """Remembers evictions and what units held, and objects to what was not to be."""

    def __init__(self) -> None:
        self._evicted: set[AttemptId] = set()
        self._seen: dict[tuple[str, str], object] = {}
        self._held: dict[tuple[str, str, str], tuple[object, Sequence[int]]] = {}

    def see(self, cluster: Cluster) -> None:
        """Compare with what was seen before."""
        self.see_attempts(cluster, cluster.attempts.values())
        self.see_limits(cluster)

    def knows(self, attempt: AttemptId) -> bool:
        """Whether an eviction was seen before."""
        return attempt in self._evicted

    def see_limits(self, cluster: Cluster) -> None:
        """Hold units to their limits, and what is guaranteed to their quotas."""
        units = cluster.unit_load.units
        for pool in units.pools:
            standings, counted = units.in_pool(pool), units.counted(pool)
            for unit in units:
                if (standing := standings.get(unit.name)) is None:
                    continue
                now = (standing.entitlement, tuple(standing.held), tuple(standing.fixed), counted)
                if self._seen.get((unit.name, pool)) == (now, standing.above, len(standing.below)):
                    continue  # nothing has changed since it was found to be right
                self._seen[unit.name, pool] = (now, standing.above, len(standing.below))
                quota, limit = standing.entitlement.quota, standing.entitlement.limit
                state = (limit, tuple(standing.below), standing.above)
                within = [quota[place] if place in counted else UNLIMITED_AMOUNT for place in PLACES]
                self._hold_to("limit", (unit.name, pool), state, standing.held, limit)
                self._hold_to("quota", (unit.name, pool), (state, *within), standing.fixed, within)

    def see_attempts(self, cluster: Cluster, attempts: Iterable[Attempt]) -> None:
        """Hold evictions that were decided in this turn to the rules."""
        for attempt in attempts:
            if attempt.preempted_for is not None and attempt.attempt_id not in self._evicted:
                self._evicted.add(attempt.attempt_id)
                self._hold_to_rules(cluster, attempt, attempt.preempted_for)

    def _hold_to_rules(self, cluster: Cluster, attempt: Attempt, winner: JobId) -> None:
        """Hold an eviction that has just been decided to who may evict whom, and when."""
        job, other = cluster.jobs[attempt.job], cluster.jobs.get(winner)
        live = cluster.newest_attempt(job.id).number == attempt.number
        assert not live or job.job_class is not JobClass.GUARANTEED, f"{job.id} is guaranteed and was evicted"
        if other is None or cluster.newest_attempt(winner).claim is None:
            return  # it was decided before the coordinator started, or the winner is gone
        assert other.job_class is not JobClass.SPARE, f"{winner} is spare and evicts {job.id}"
        if job.job_class is JobClass.SPARE:
            return
        within = other.spec.project == job.spec.project
        if within:
            mine, theirs = ((each.job_class.order, -each.spec.priority) for each in (job, other))
            assert mine > theirs, f"{winner} evicts {job.id}, which does not come after it in their project"
        times = [each.times for each in cluster.gangs.members(attempt.attempt_id)]
        started = [each[State.RUNNING] for each in times if State.RUNNING in each]
        assert len(started) == len(times), f"{job.id} was evicted before it had started"
        stopped = [each[State.STOPPING] for each in times if State.STOPPING in each]
        safe = _min_runtime(cluster, job, within=within) * 2 ** min(job.evictions - 1, MOST_DOUBLINGS)
        assert not stopped or min(stopped) >= max(started) + safe, f"{job.id} was evicted while it was safe"

    def _hold_to(self, term: str, of: tuple[str, str], state: object, held: Sequence[int], most: Sequence[int]) -> None:
        """Hold a unit to a term: it may have more only if it had so when the term was set."""
        before_state, before = self._held.get((term, *of), (None, held))
        self._held[term, *of] = (state, tuple(held))
        if before_state == state:
            for place in PLACES:
                within = held[place] <= max(most[place], before[place])
                assert within, f"{of} holds {held[place]} of its {term} of {most[place]}"


def _min_runtime(cluster: Cluster, job: Job, *, within: bool) -> timedelta:
    pool = cluster.unit_load.pool_of(job)
    for unit in cluster.unit_load.units.get(job.spec.project).line():
        terms = unit.terms.in_pool(pool)
        said = terms.min_runtime_within if within else terms.min_runtime
        if said is not None:
            return said
    return timedelta() if within else USUAL_MIN_RUNTIME
