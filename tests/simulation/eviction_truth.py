"""What must be true of evictions: decided by the rules, told in one commit, and never at the cost of a promise."""

from collections.abc import Sequence

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.records import Attempt, Change, Put
from tests.eviction_invariants import EvictionWitness
from tests.simulation.world import Violation


class EvictionTruth:
    """Looks at each turn as it is decided."""

    def __init__(self) -> None:
        self.evicted = 0
        """Attempts that had to make room."""
        self._witness = EvictionWitness()

    def stepped(self, cluster: Cluster, changes: Sequence[Change]) -> None:
        """Hold the evictions of one turn to the rules."""
        attempts = [each.record for each in changes if isinstance(each, Put) and isinstance(each.record, Attempt)]
        victims = [each for each in attempts if each.preempted_for is not None and each.ended_at is None]
        for victim in victims:
            before = self._witness.knows(victim.attempt_id)
            if not before:
                self.evicted += 1
                if not any(each.job == victim.preempted_for and each.claim is not None for each in attempts):
                    raise Violation(f"{victim.job} makes room, and nobody has claimed it", victim.job)
        self._witness.see_attempts(cluster, victims)
        self._witness.see_limits(cluster)
