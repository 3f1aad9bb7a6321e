"""Agents as the coordinator should find them: they do what their plan says, one small step at a time."""

from dataclasses import dataclass, field

from coordinator.core.events import ExecutionsReported
from muster.domain.gangs.plan import Assignment, Goal, Report, Stage
from muster.domain.ids import AttemptId, ExecutionId, GpuUuid, JobId, NodeId
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.lifecycle import State
from tests.builders import Follower, World, report

ENDED = frozenset({Stage.EXITED, Stage.FAILED, Stage.STOPPED})


@dataclass(slots=True)
class Local:
    """What there is of one execution on a node."""

    assignment: Assignment
    stage: Stage = Stage.PREPARING
    code: int = 0
    log_complete: bool = False

    def report(self) -> Report:
        told = report(self.assignment.execution, self.stage, log_complete=self.log_complete)
        if self.stage is Stage.EXITED:
            return report(told.execution, self.stage, exit=Exit(code=self.code), log_complete=self.log_complete)
        return told


@dataclass(slots=True)
class Agent:
    """One node's agent; it outlives streams and coordinators."""

    world: World
    node: NodeId
    locals: dict[ExecutionId, Local] = field(default_factory=dict)
    outgoing: list[Report] = field(default_factory=list)
    sent: list[Report] = field(default_factory=list)

    @property
    def plan(self) -> Follower:
        return self.world.followers.setdefault(self.node, Follower())

    @property
    def connected(self) -> bool:
        presence = self.world.cluster.presence.get(self.node)
        return presence is not None and presence.session is not None

    def connect(self) -> None:
        """Connect with the whole truth; what waited to be told is in it."""
        self.outgoing.clear()
        self.world.connect(self.node, reports=[local.report() for local in self.locals.values()])

    def restart(self) -> None:
        """What runs or has run is found again; what was only prepared is given up, or its traces are gone."""
        for name, local in list(self.locals.items()):
            if local.stage is Stage.PREPARING:
                del self.locals[name]
            elif local.stage in {Stage.PREPARED, Stage.ARMED}:
                local.stage = Stage.STOPPED
        self.plan.desired.clear()
        self.connect()

    def to_do(self) -> list[ExecutionId]:
        """Executions for which there is something to do."""
        return [name for name in [*self.plan.goals, *self.locals] if self._following(name) is not None]

    def work(self, name: ExecutionId, *, code: int = 0) -> None:
        """Do the next thing for one execution."""
        following = self._following(name)
        if following is None:
            return
        if following == "remove":
            del self.locals[name]
            return
        if following == "begin":
            self.locals[name] = Local(self.plan.assignments[name])
        elif following == "complete log":
            self.locals[name].log_complete = True
        else:
            assert isinstance(following, Stage)
            self._come_to(self.locals[name], following, code)
        self.outgoing.append(self.locals[name].report())

    def runs_code(self, name: ExecutionId) -> bool:
        """Whether its user code runs."""
        return name in self.locals and self.locals[name].stage is Stage.RUNNING

    def running_attempts(self) -> set[tuple[JobId, int]]:
        """Attempts that have user code running here."""
        running = (local.assignment for local in self.locals.values() if local.stage is Stage.RUNNING)
        return {(assignment.job, assignment.attempt) for assignment in running}

    def fail(self, name: ExecutionId) -> None:
        """Fail to prepare, arm or start an execution."""
        local = self.locals[name]
        if local.stage in {Stage.PREPARING, Stage.PREPARED, Stage.ARMED}:
            local.stage = Stage.FAILED
            self.outgoing.append(local.report())

    def deliver(self, index: int) -> None:
        """One of the reports that wait reaches the coordinator."""
        told = self.outgoing.pop(index % len(self.outgoing))
        self.sent.append(told)
        self.world.turn(ExecutionsReported(node=self.node, reports=(told,)))

    def deliver_all(self) -> None:
        self.sent += self.outgoing
        told, self.outgoing = tuple(self.outgoing), []
        self.world.turn(ExecutionsReported(node=self.node, reports=told))

    def repeat(self, index: int) -> None:
        """An old report comes once more."""
        self.world.turn(ExecutionsReported(node=self.node, reports=(self.sent[index % len(self.sent)],)))

    def _following(self, name: ExecutionId) -> Stage | str | None:  # noqa: PLR0911 - one for each thing to do
        goal, local = self.plan.goals.get(name), self.locals.get(name)
        if local is None:
            return None if goal is None else "begin"
        if local.stage in ENDED:
            if goal is None:
                return "remove"
            return None if local.log_complete else "complete log"
        if goal is None or goal is Goal.STOP:
            return Stage.EXITED if local.stage is Stage.RUNNING else Stage.STOPPED
        if local.stage is Stage.PREPARING:
            return Stage.PREPARED
        if local.stage is Stage.PREPARED:
            return Stage.ARMED if goal >= Goal.ARM else None
        if local.stage is Stage.ARMED:
            return Stage.RUNNING if goal >= Goal.RUN else None
        return Stage.EXITED

    def _come_to(self, local: Local, stage: Stage, code: int) -> None:
        if stage is Stage.RUNNING:
            self._starts_user_code(local)
        stopped = self.plan.goals.get(local.assignment.execution) in {None, Goal.STOP}
        local.stage, local.code = stage, 143 if stopped else code

    def _starts_user_code(self, local: Local) -> None:
        """The moment of truth: all its peers are armed, and its GPUs are its own."""
        key = AttemptId(local.assignment.job, local.assignment.attempt)
        if key in self.world.cluster.attempts:
            assert all(State.ARMED in member.times for member in self.world.cluster.gangs.members(key))
        roster = self.plan.rosters[key]
        assert len(roster.members) == local.assignment.world_size
        assert roster.member(local.assignment.rank).node == self.node
        assert not self.busy_gpus() & set(local.assignment.gpus), f"a GPU of {self.node} has two users"

    def busy_gpus(self) -> set[GpuUuid]:
        """GPUs that user code is using right now."""
        running = (local for local in self.locals.values() if local.stage is Stage.RUNNING)
        return {gpu for local in running for gpu in local.assignment.gpus}
