"""What must be true of times and holds by the world's own clock: who waits is not placed, and limits are not early."""

from collections.abc import Iterable

from coordinator.core.records import Attempt, Execution, Job, Node
from muster.domain.fleet.window import Window
from muster.domain.ids import AttemptId
from muster.domain.jobs.failure import FailureKind
from muster.domain.jobs.lifecycle import NOT_PLACED, TERMINAL, State
from tests.simulation.world import SECOND, Clock, Violation, World

SLOW = 8 * SECOND
"""What lies between a decision and its commit at most, twice: at the begin and at the end of a stay in the queue."""
SKEW = 0.03
"""How much faster than true time the coordinator's clock may run."""


class CalendarTruth:
    """Holds what is committed against what really happened."""

    def __init__(self, world: World) -> None:
        self.clock: Clock | None = None
        """The clock of the coordinator."""
        self.suspended = 0
        """Attempts that ended because their job was suspended."""
        self.queue_timeouts = 0
        """Attempts that were in the queue for as long as they may."""
        self.windows: dict[str, Window] = {}
        """Windows that an admin was told of, and does not want to be gone."""
        self.forgotten = 0
        """Jobs that were forgotten some time after their end."""
        self._world = world
        self._since: dict[AttemptId, int] = {}
        self._stayed: dict[AttemptId, int] = {}
        self._told: set[AttemptId] = set()

    def see_execution(self, job: Job, before: Execution | None, after: Execution) -> None:
        """One stands for its gang: it is not placed while something keeps it out, and its stays in the queue count."""
        if after.rank != 0:
            return
        name, was = after.attempt_id, None if before is None else before.state
        if job.holds and was in {*NOT_PLACED, None} and after.state not in NOT_PLACED | TERMINAL:
            kinds = ", ".join(hold.kind for hold in job.holds)
            raise Violation(f"{after.id} is {after.state} though its job waits: {kinds}", after.job)
        if after.state is State.QUEUED and was is not State.QUEUED:
            self._since[name] = self._world.at
        elif was is State.QUEUED and after.state is not State.QUEUED:
            self._stayed[name] = self._stayed.get(name, 0) + self._world.at - self._since.pop(name)

    def see_attempt(self, job: Job, attempt: Attempt) -> None:
        """An attempt that has ended for the time that it was in the queue was there for so long."""
        name, failure = attempt.attempt_id, attempt.failure
        if failure is None or failure.rank is not None or attempt.ended_at is None or name in self._told:
            return  # of a rank, an agent may say anything
        self._told.add(name)
        self.suspended += failure.kind is FailureKind.SUSPENDED
        if failure.kind is not FailureKind.QUEUE_TIMEOUT:
            return
        self.queue_timeouts += 1
        limit = job.spec.timeouts.queue
        if limit is None:
            raise Violation(f"{job.id} was in the queue for too long, though it has no such limit", job.id)
        stayed = self._stayed.get(name, 0)
        if stayed + SLOW < limit.total_seconds() * SECOND * (1 - SKEW):
            was = f"but it was there for {stayed / SECOND:.0f} s"
            raise Violation(f"{job.id} fails as it was in the queue for {limit}, {was}", job.id)

    def see_placement(self, job: Job, attempt: Attempt, nodes: Iterable[Node]) -> None:
        """An attempt that was just placed is on no node that a window closes to it."""
        at, limit = attempt.placed_at, job.spec.timeouts.run
        assert at is not None
        ends = None if limit is None else at + job.spec.timeouts.check_in + limit
        for window in self.windows.values():
            is_over = at >= window.ends or at < window.begins - window.notice
            if is_over or window.project == job.spec.project or (ends is not None and ends <= window.begins):
                continue
            for node in nodes:
                if node.name in window.nodes or window.labels.items() <= node.inventory.labels.items():
                    when = f"from {window.begins} to {window.ends}"
                    raise Violation(f"{job.id} is placed on {node.name} at {at}, which is in a window {when}", job.id)

    def see_forgotten(self, job: Job) -> bool:
        """Whether a job may be forgotten without anybody asking for it: some time after its end."""
        assert self.clock is not None
        after, now = job.spec.delete_after, self.clock.now
        if job.ended_at is None or after is None or now < job.ended_at + after:
            return False
        self.forgotten += 1
        return True
