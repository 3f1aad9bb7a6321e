"""The executions of each attempt: by rank, counted by state, as a roster once they have checked in, and their use."""

from collections import Counter
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import TypeVar

from coordinator.core.cluster.evictions.evictable import Evictable
from coordinator.core.cluster.saved.checkpoints import SavedCheckpoints
from coordinator.core.cluster.uses import Uses
from coordinator.core.records import Attempt, Execution, Job, Node
from muster.domain.gangs.roster import Member, Roster
from muster.domain.ids import AttemptId, JobId, NodeId
from muster.domain.jobs.lifecycle import State

_Key = TypeVar("_Key")


class Gangs:
    """An index over executions: the members of each attempt that are at hand."""

    def __init__(self, jobs: Mapping[JobId, Job], nodes: Mapping[NodeId, Node], started_at: datetime) -> None:
        """`started_at`: when the coordinator started."""
        self._jobs = jobs
        self._nodes = nodes
        self._members: dict[AttemptId, dict[int, Execution]] = {}
        self._tally: dict[AttemptId, Counter[State]] = {}
        self._rosters: dict[AttemptId, Roster] = {}
        """Rosters of attempts that have checked in and not ended; built on first use."""
        self._storing: Counter[JobId] = Counter()
        """How many executions of each job have outputs on their way; none of them is zero."""
        self._storing_in: Counter[AttemptId] = Counter()
        """The same of each attempt, also where they are stored again."""
        self._saving: Counter[AttemptId] = Counter()
        """How many executions of each attempt have parts of checkpoints on their way; none of them is zero."""
        self.checkpoints = SavedCheckpoints(jobs)
        self.uses = Uses(started_at)
        self.evictable = Evictable(jobs, self.members)

    def members(self, attempt: AttemptId) -> Collection[Execution]:
        """The executions of an attempt by rank; none of an old one that is not at hand any more."""
        return self._members.get(attempt, {}).values()

    def rank(self, attempt: AttemptId, rank: int) -> Execution:
        """One execution of an attempt."""
        return self._members[attempt][rank]

    def tally(self, attempt: AttemptId) -> Counter[State]:
        """How many executions of an attempt are in which state."""
        return self._tally[attempt]

    def storing(self, job: JobId) -> int:
        """How many executions of a job have something on its way to the depot, of whichever attempts."""
        return self._storing.get(job, 0)

    def storing_in(self, attempt: AttemptId) -> int:
        """How many executions of an attempt have outputs on their way, also for the second time."""
        return self._storing_in.get(attempt, 0)

    def saving(self, attempt: AttemptId) -> bool:
        """Whether parts of checkpoints of an attempt are on their way."""
        return attempt in self._saving

    def has_succeeded(self, attempt: AttemptId) -> bool:
        """Whether the executions that decide on the success have ended well; never where all decide."""
        deciding, tally = self._jobs[attempt.job].spec.deciding, self._tally[attempt]
        if deciding is None or tally[State.SUCCEEDED] < len(deciding):
            return False  # without a look at each, which a large role would make dear
        members = self._members[attempt]
        return all(members[rank].state is State.SUCCEEDED for rank in deciding)

    def roster(self, attempt: AttemptId) -> Roster:
        """The roster of an attempt that has checked in."""
        if attempt not in self._rosters:
            self._rosters[attempt] = self._roster(attempt)
        return self._rosters[attempt]

    def changed(self, before: Execution | None, after: Execution | None) -> None:
        """Hear of an execution that is new, other than before, or forgotten."""
        self._count_storing(before, -1)
        self._count_storing(after, 1)
        if after is None:
            assert before is not None
            self._drop(before)
            return
        attempt_id = after.attempt_id
        if before is None:
            self._members.setdefault(attempt_id, {})
            self._tally.setdefault(attempt_id, Counter())[after.state] += 1
        elif before.state is not after.state:
            tally = self._tally[attempt_id]
            tally[before.state] -= 1
            tally[after.state] += 1
        self._members[attempt_id][after.rank] = after
        self.evictable.member_changed(after)

    def attempt_changed(self, before: Attempt | None, after: Attempt | None) -> None:
        """Hear of an attempt that is new, other than before, or forgotten: one that has ended needs no roster."""
        self.uses.attempt_changed(before, after)
        self.evictable.changed(before, after)
        if before is not None and (after is None or after.ended_at is not None):
            self._rosters.pop(before.attempt_id, None)

    def _count_storing(self, execution: Execution | None, change: int) -> None:
        if execution is not None and execution.stores:
            _count(self._storing, execution.job, change)
        if execution is not None and (execution.stores or execution.stores_again):
            _count(self._storing_in, execution.attempt_id, change)
        if execution is not None and execution.checkpoints.storing:
            _count(self._saving, execution.attempt_id, change)

    def _drop(self, execution: Execution) -> None:
        attempt_id = execution.attempt_id
        members = self._members[attempt_id]
        del members[execution.rank]
        self._tally[attempt_id][execution.state] -= 1
        if not members:
            del self._members[attempt_id], self._tally[attempt_id]

    def _roster(self, attempt: AttemptId) -> Roster:
        job = self._jobs[attempt[0]]
        return Roster.of(
            job=job.id,
            job_name=job.spec.name,
            attempt=attempt[1],
            network=job.spec.network,
            members=(
                Member(
                    rank=member.rank,
                    execution=member.id,
                    role=job.spec.role_of(member.rank).name,
                    node=member.node or NodeId(""),
                    address=member.address or "",
                    checked_in_at=member.times[State.CHECKED_IN],
                    ports=member.ports,
                    gpus=member.gpus,
                    peer_port=self._peer_port(member),
                )
                for member in self.members(attempt)
            ),
        )

    def _peer_port(self, member: Execution) -> int:
        node = self._nodes.get(member.node or NodeId(""))
        return 0 if node is None else node.peer_port


def _count(counter: Counter[_Key], key: _Key, change: int) -> None:
    """Count with no zero left behind."""
    counter[key] += change
    if not counter[key]:
        del counter[key]
