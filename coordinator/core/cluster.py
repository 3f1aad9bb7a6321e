"""The cluster: all records with the indexes that let a step cost in proportion to what it touches.

The only mutable object of the core; it belongs to the engine.
"""

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

from coordinator.core.deadlines import AttemptKey, Deadlines
from coordinator.core.job_index import JobIndex
from coordinator.core.limits import Limits
from coordinator.core.presence import Presence
from coordinator.core.records import Attempt, Execution, Job, Node, Record
from coordinator.core.reservation import Reservation
from coordinator.core.rooms import Usage, capacity, less
from coordinator.core.shapes import Shapes
from coordinator.core.stock import LiveStock, Room
from muster.domain.fence import LEASE
from muster.domain.ids import ExecutionId, JobId, NodeId
from muster.domain.lifecycle import TERMINAL, JobPhase, State, phase
from muster.domain.roster import Roster

HEARTBEAT_INTERVAL = timedelta(seconds=10)


class Cluster:
    """All records by key, and what follows from them."""

    def __init__(self) -> None:
        self.awake_since = datetime.min.replace(tzinfo=UTC)
        """Since when the coordinator looks at leases without a gap; before that nobody was silent."""
        self.started_at = datetime.min.replace(tzinfo=UTC)
        """Of the coordinator; times of before are those of another clock."""
        self.fleet_key = b""
        """Secret from which those of the attempts are made."""
        self.limits = Limits()
        self.jobs: dict[JobId, Job] = {}
        self.job_index = JobIndex()
        self.attempts: dict[AttemptKey, Attempt] = {}
        self.rosters: dict[AttemptKey, Roster] = {}
        """Of attempts that have checked in and go on, as far as they were asked for."""
        self.executions: dict[ExecutionId, Execution] = {}
        self.nodes: dict[NodeId, Node] = {}
        self.presence: dict[NodeId, Presence] = {}
        self.refused: dict[JobId, str] = {}
        """Why a queued job did not fit when it was last tried."""
        self._reservation: Reservation | None = None
        self.reservation_checked = False
        """Whether its nodes were found able to hold it since anything about them changed."""
        self._ranks: dict[AttemptKey, list[ExecutionId]] = {}
        self._tally: dict[AttemptKey, Counter[State]] = {}
        self._planned: defaultdict[NodeId, dict[ExecutionId, None]] = defaultdict(dict)
        self._usage: defaultdict[NodeId, Usage] = defaultdict(Usage)
        self._queue: list[tuple[int, int, JobId]] = []
        self.shapes = Shapes()
        """Of the jobs in the queue."""
        self._keys: dict[str, JobId] = {}
        self.deadlines = Deadlines()
        self.next_sequence = 1
        """Higher than that of every job."""
        self.capacities = LiveStock(lambda node: capacity(self.nodes[node]))
        """What the nodes have in all, there or not."""
        self.empty_rooms = LiveStock(lambda node: less(self.capacities.room(node), Usage(), self.placeable(node)))
        """What they would have to give if nothing ran."""
        self.rooms = LiveStock(self._room)
        """What they have to give now."""
        self.rooms_beside = LiveStock(self._room_beside)
        """What they have to give beside what is reserved; empty while nothing is."""

    # reading

    def job_of_key(self, idempotency_key: str) -> Job | None:
        """The job that was submitted with this key."""
        job = self._keys.get(idempotency_key) if idempotency_key else None
        return self.jobs[job] if job is not None else None

    def newest_attempt(self, job: JobId) -> Attempt:
        """The attempt that counts."""
        return self.attempts[(job, self.jobs[job].attempt)]

    def members(self, attempt: AttemptKey) -> Iterator[Execution]:
        """The executions of an attempt by rank; none of an old one that is not at hand any more."""
        return (self.executions[execution] for execution in self._ranks.get(attempt, ()))

    def rank(self, attempt: AttemptKey, rank: int) -> Execution:
        """One execution of an attempt."""
        return self.executions[self._ranks[attempt][rank]]

    def tally(self, attempt: AttemptKey) -> Counter[State]:
        """How many executions of an attempt are in which state."""
        return self._tally[attempt]

    def phase(self, job: JobId) -> JobPhase:
        """The phase of a job, from its newest attempt."""
        key = (job, self.jobs[job].attempt)
        present = {state for state, count in self._tally[key].items() if count}
        return phase(present, self.rank(key, 0).state, self.jobs[job].spec.success)

    def planned(self, node: NodeId) -> Iterable[Execution]:
        """The executions that the plan of a node lists: live ones, and ended ones whose log is not complete."""
        return (self.executions[execution] for execution in self._planned[node])

    def is_planned(self, node: NodeId, execution: ExecutionId) -> bool:
        """Whether the plan of a node lists an execution."""
        return execution in self._planned[node]

    def usage(self, node: NodeId) -> Usage:
        """What of a node is given away; not to be changed."""
        return self._usage[node]

    def heard_at(self, node: NodeId) -> datetime:
        """Until when a node was not silent, as far as the coordinator could hear."""
        return max(self.presence[node].last_seen_at, self.awake_since)

    def placeable(self, node: NodeId) -> str | None:
        """Why nothing can be placed on a node at all; None: something can."""
        presence = self.presence[node]
        if presence.lost:
            return "is lost: its agent has been silent for too long"
        if presence.session is None:
            return "is unreachable: its agent is not connected"
        cordon = self.nodes[node].cordon
        if cordon is not None:
            return f"is cordoned: {cordon.reason}" if cordon.reason else "is cordoned"
        if presence.ghosts:
            count = len(presence.ghosts)
            return f"is clearing away {count} {'execution' if count == 1 else 'executions'} of before"
        return None

    @property
    def reservation(self) -> Reservation | None:
        """What is kept free for the head of the queue."""
        return self._reservation

    def queued(self) -> Iterator[Job]:
        """Jobs that wait for placement: higher priority first, then first come, first served."""
        return (self.jobs[job] for _, _, job in self._queue)

    @property
    def waiting(self) -> int:
        """How many jobs are in the queue."""
        return len(self._queue)

    def queue_position(self, job: JobId) -> int:
        """1 for the head of the queue; 0: it does not wait."""
        entry = _queue_entry(self.jobs[job])
        place = bisect_left(self._queue, entry)
        return place + 1 if place < len(self._queue) and self._queue[place] == entry else 0

    # changing

    def put(self, record: Record) -> None:
        """Add a record or replace the one with the same key."""
        match record:
            case Job():
                self._put_job(record)
            case Attempt():
                self.attempts[(record.job, record.number)] = record
                if record.ended_at is not None:
                    self.rosters.pop((record.job, record.number), None)
            case Execution():
                self._put_execution(record)
            case Node():
                self.nodes[record.name] = record
                self.capacities.touch(record.name)
                self.touch(record.name)

    def drop_job(self, job: JobId) -> None:
        """Forget a job that has ended."""
        dropped = self.jobs.pop(job)
        self.job_index.drop(dropped)
        self._keys.pop(dropped.idempotency_key, None)
        self.refused.pop(job, None)
        for number in range(1, dropped.attempt + 1):
            key = (job, number)
            self.attempts.pop(key, None)
            self.rosters.pop(key, None)
            self._tally.pop(key, None)
            for execution in self._ranks.pop(key, []):
                node = self.executions.pop(execution).node
                if node is not None:
                    self._planned[node].pop(execution, None)

    def forget_members(self, attempt: AttemptKey) -> None:
        """Keep no execution of an attempt that has ended."""
        for execution in self._ranks.pop(attempt):
            node = self.executions.pop(execution).node
            if node is not None:
                self._planned[node].pop(execution, None)
        del self._tally[attempt]

    def drop_node(self, node: NodeId) -> None:
        """Forget a node that runs nothing."""
        del self.nodes[node], self.presence[node]
        self.deadlines.forget_node(node)
        self._planned.pop(node, None)
        self._usage.pop(node, None)
        for stock in (self.capacities, self.empty_rooms, self.rooms, self.rooms_beside):
            stock.forget(node)
        if self._reservation is not None and node in self._reservation.nodes:
            self.reserve(None)

    def appear(self, node: NodeId, now: datetime) -> Presence:
        """Start to believe in a node."""
        presence = self.presence.setdefault(node, Presence(last_seen_at=now))
        self.deadlines.watch_lease(node, now + LEASE)
        return presence

    def wake_up(self, now: datetime) -> None:
        """Call no node silent for a time in which the coordinator itself could not hear."""
        self.awake_since = now

    def touch(self, node: NodeId) -> None:
        """What a node has to give must be worked out anew: its presence or inventory changed."""
        self.empty_rooms.touch(node)
        if self._reservation is not None and node in self._reservation.nodes:
            self.reservation_checked = False
        self._touch_usage(node)

    def reserve(self, reservation: Reservation | None) -> None:
        """Keep this free from now on; what was kept before is not any more."""
        if reservation is not self._reservation:
            self._reservation, self.reservation_checked = reservation, reservation is not None
            self.rooms_beside = LiveStock(self._room_beside, self.nodes if reservation is not None else ())

    def _room(self, node: NodeId) -> Room:
        return less(self.capacities.room(node), self._usage[node], self.placeable(node))

    def _room_beside(self, node: NodeId) -> Room:
        assert self._reservation is not None
        return self._reservation.beside(self.rooms.room(node))

    def _touch_usage(self, node: NodeId) -> None:
        self.rooms.touch(node)
        if self._reservation is not None:
            self.rooms_beside.touch(node)

    def _put_job(self, job: Job) -> None:
        before = self.jobs.get(job.id)
        self.jobs[job.id] = job
        self.job_index.put(before, job)
        self.next_sequence = max(self.next_sequence, job.sequence + 1)
        if before is None and job.idempotency_key:
            self._keys[job.idempotency_key] = job.id

    def _put_execution(self, after: Execution) -> None:
        before = self.executions.get(after.id)
        key = (after.job, after.attempt)
        self.executions[after.id] = after
        if before is None:
            self._ranks.setdefault(key, []).append(after.id)
            self._tally.setdefault(key, Counter())[after.state] += 1
        elif before.state is not after.state:
            self._tally[key][before.state] -= 1
            self._tally[key][after.state] += 1
        self._index_queue(before, after)
        self._index_usage(before, after)
        if after.node is not None:
            if _listed(after):
                self._planned[after.node][after.id] = None
            else:
                self._planned[after.node].pop(after.id, None)

    def _index_queue(self, before: Execution | None, after: Execution) -> None:
        """Rank 0 stands for its gang: all of a gang leave the queue in one step."""
        was, waits = before is not None and before.state is State.QUEUED, after.state is State.QUEUED
        if after.rank != 0 or was == waits:
            return
        entry = _queue_entry(self.jobs[after.job])
        if waits:
            insort(self._queue, entry)
            self.shapes.add(self.jobs[after.job])
        else:
            del self._queue[bisect_left(self._queue, entry)]
            self.shapes.remove(after.job)
            self.refused.pop(after.job, None)

    def _index_usage(self, before: Execution | None, after: Execution) -> None:
        held, holds = before is not None and _holds(before), _holds(after)
        if held == holds or after.node is None:
            return
        self._touch_usage(after.node)
        usage, role = self._usage[after.node], self.jobs[after.job].spec.role_of(after.rank)
        sign = 1 if holds else -1
        usage.cpu_millis += sign * role.resources.cpu_millis
        usage.memory += sign * (role.resources.memory or 0)
        if holds:
            usage.gpus.update(after.gpus)
            usage.executions.add(after.id)
        else:
            usage.gpus.difference_update(after.gpus)
            usage.executions.discard(after.id)


def _queue_entry(job: Job) -> tuple[int, int, JobId]:
    return (-job.spec.priority, job.sequence, job.id)


def _holds(execution: Execution) -> bool:
    return execution.state is not State.QUEUED and execution.state not in TERMINAL


def _listed(execution: Execution) -> bool:
    """A lost one, too: its node may come back, with the rest of its log."""
    return execution.state not in TERMINAL or not execution.log_complete
