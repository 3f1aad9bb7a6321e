"""Sees everything and holds it against what must always be true (architecture, section 8)."""

import re
from collections.abc import Callable, Sequence

from coordinator.core.answers import Answer, ProjectGone, ProjectKept
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.records import Attempt, Change, DropJob, DropNode, DropProject, Execution, Job, Node, Put
from muster.domain.fleet.access import Project
from muster.domain.gangs.plan import Assignment, Goal
from muster.domain.gangs.roster import Member
from muster.domain.ids import AttemptId, ExecutionId, JobId, NodeId, execution_id
from muster.domain.jobs.disconnect import OnDisconnect
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.job import JobSpec, Network, Role
from muster.domain.jobs.lifecycle import NOT_PLACED, PROGRESS, TERMINAL, State
from muster.domain.jobs.ports import ports_of
from tests.invariants import validate, validate_job
from tests.lasting_records import lasting
from tests.simulation.calendar_truth import CalendarTruth
from tests.simulation.checkpoints_truth import check_restores
from tests.simulation.device_truth import check_devices
from tests.simulation.eviction_truth import EvictionTruth
from tests.simulation.found_truth import check_found
from tests.simulation.outputs_truth import check_outputs
from tests.simulation.place_truth import check_places
from tests.simulation.scenario import Scenario, behaviour
from tests.simulation.spending_truth import SpendingTruth
from tests.simulation.taint_truth import TaintTruth, cordoned_after
from tests.simulation.truth import Behaviour, Sandbox, SimulatedNode
from tests.simulation.used_things import UsedThings
from tests.simulation.world import SECOND, Violation, World
from tests.spending_invariants import meters_run_by_what_is_above_the_quota

SEVERAL = 100
"""Executions with which the whole cluster is looked at after every few steps; with more, in proportion less often."""
FEW = 8
UNHEARD = 28 * SECOND
"""The time in which a use may be that nobody can have heard of yet: two heartbeats, and a slow network."""


class Watcher:
    """The nature of all nodes and the observer of the coordinator."""

    def __init__(self, world: World, scenario: Scenario) -> None:
        self.nodes: dict[NodeId, SimulatedNode] = {}
        self.accepted: dict[JobId, JobSpec] = {}
        """Jobs that a client was told of."""
        self.keys: dict[str, JobId] = {}
        self.deletable: dict[JobId, None] = {}
        """Jobs that a client asked to have deleted."""
        self.lost_while_running = 0
        """Executions that count as lost while their user code runs: the one gap between belief and truth."""
        self.fences = 0
        """Executions that were ended for want of contact."""
        self.unused = 0
        """Jobs that were stopped because nobody used them."""
        self.calendar = CalendarTruth(world)
        self.taints = TaintTruth()
        self.evictions = EvictionTruth()
        self.spending = SpendingTruth()
        self.on_accept: list[Callable[[Job], None]] = []
        """Told of each job that a client was told of, once for each."""
        self._unchecked = 0
        self._world = world
        self._scenario = scenario
        self._newest: dict[ExecutionId, Sandbox] = {}
        self._exits: dict[ExecutionId, Exit] = {}
        self._started: dict[ExecutionId, None] = {}
        self._used = UsedThings()
        """GPUs and fixed ports of nodes that user code uses right now."""
        self._running: dict[JobId, dict[ExecutionId, int]] = {}
        """User code that runs right now, with its attempt."""
        self._records: dict[ExecutionId, Execution] = {}
        self._cordoned: frozenset[NodeId] = frozenset()
        self.uncordoned: set[NodeId] = set()
        """Nodes that an operator wants to take jobs again."""
        self._attempts: dict[tuple[JobId, int], Attempt] = {}
        self._placed: set[AttemptId] = set()
        self._known_nodes: dict[NodeId, Node] = {}
        self._jobs: dict[JobId, Job] = {}
        self._forgotten: set[JobId] = set()
        """Jobs that went by themselves, some time after their end."""
        self._projects: set[str] = set()
        self.on_start: Callable[[SimulatedNode, Sandbox], None] | None = None
        """Told whenever user code has started."""

    # the nodes

    def behaviour(self, assignment: Assignment) -> Behaviour:
        return behaviour(self._world.chance(f"code {assignment.execution}"), self._scenario)

    def sandbox_made(self, node: SimulatedNode, sandbox: Sandbox) -> None:
        known = self._newest.get(sandbox.execution)
        if known is not None and known.running:
            raise Violation(f"{sandbox.execution} is prepared again while its user code runs", *_about(node, sandbox))
        self._newest[sandbox.execution] = sandbox

    def code_started(self, node: SimulatedNode, sandbox: Sandbox) -> None:
        about, order = _about(node, sandbox), sandbox.assignment
        if sandbox.execution in self._started:
            raise Violation(f"user code of {sandbox.execution} starts twice", *about)
        self._started[sandbox.execution] = None
        self._check_gang_is_armed(sandbox, about)
        check_found(sandbox, self._newest)
        things = order.role.resources, order.gpus, _fixed_ports(node.name, order.role, order.rank, order.network)
        if (found := self._used.in_the_way(*things)) is not None:
            raise Violation(f"{found[0]} is used by {found[1]} and by {sandbox.execution}", *about)
        self._used.use(sandbox.execution, *things)
        running = self._running.setdefault(order.job, {})
        if any(attempt != order.attempt for attempt in running.values()):
            raise Violation(f"two attempts of {order.job} have running user code", *about)
        running[sandbox.execution] = order.attempt
        if self.on_start is not None:
            self.on_start(node, sandbox)

    def code_ended(self, sandbox: Sandbox) -> None:
        assert sandbox.exit is not None
        if sandbox.lost is None:
            self._exits[sandbox.execution] = sandbox.exit
        del self._running[sandbox.assignment.job][sandbox.execution]
        self._used.leave(sandbox.execution)

    def fenced(self, node: SimulatedNode, sandbox: Sandbox) -> None:
        """An agent or a killer ends user code for want of contact."""
        self.fences += 1
        if self._scenario.no_fence:
            message = f"{sandbox.execution} is ended though only the coordinator was away"
            raise Violation(message, *_about(node, sandbox))

    def _check_gang_is_armed(self, sandbox: Sandbox, about: tuple[str, ...]) -> None:
        order = sandbox.assignment
        assert sandbox.roster is not None
        members = sandbox.roster.members
        _check_members(order, members, about)
        for rank in range(order.world_size):
            other = self._newest.get(execution_id(order.job, order.attempt, rank))
            if other is None or other.roster is None:
                raise Violation(f"user code of {sandbox.execution} starts, but rank {rank} is not armed", *about)
            if other.ports != members[rank].ports:
                raise Violation(f"the roster of {order.job} has other ports for rank {rank} than it holds", *about)
            if other.note is None or other.note.address != members[rank].address:
                raise Violation(f"the roster of {order.job} has another address for rank {rank} than its own", *about)
            if other.roster != sandbox.roster:
                raise Violation(f"ranks {rank} and {order.rank} of {order.job} have unequal rosters", *about)

    # the coordinator

    def accept(self, job: Job) -> None:
        """A client was told that its job is accepted."""
        known = self.keys.setdefault(job.idempotency_key, job.id)
        if known != job.id and known not in self.deletable:
            raise Violation(f"one key made two jobs: {known} and {job.id}", known, job.id)
        if job.id not in self.accepted:
            self.accepted[job.id] = job.spec
            for tell in self.on_accept:
                tell(job)

    def check_stop(self, job: JobId) -> None:
        """A client was told that its order to stop a job is taken; so it must be stored."""
        stored = self._jobs.get(job)
        goes_on = stored is not None and self._attempts[job, stored.attempt].ended_at is None
        if stored is not None and goes_on and stored.stop_requested_at is None:
            raise Violation(f"the order to stop {job} was acknowledged, but it is not stored", job)

    def check_project(self, name: str, answer: Answer) -> None:
        """An admin was told what became of a project, and nobody else changes it; so that must be stored."""
        stored = name in self._projects
        if isinstance(answer, ProjectGone if stored else ProjectKept):
            raise Violation(f"{type(answer).__name__} was acknowledged for {name}, but it is not stored", name)

    def stepped(self, cluster: Cluster, changes: tuple[Change, ...]) -> None:
        """Look at the jobs that changed, and at the whole cluster after every few steps."""
        self._unchecked += 1
        try:
            self.evictions.stepped(cluster, changes)
            if self._unchecked * SEVERAL**2 >= max(FEW * SEVERAL**2, len(cluster.executions) ** 2):
                self._unchecked = 0
                assert self.calendar.clock is not None
                check_devices(cluster)
                validate(cluster, self.calendar.clock.now)
                meters_run_by_what_is_above_the_quota(cluster)
            else:
                for job in dict.fromkeys(map(_job_of, changes)):
                    if job is not None and job in cluster.jobs:
                        validate_job(cluster, job)
        except AssertionError as error:
            raise Violation(f"the cluster is not sound: {error}", *_words(error)) from error

    def loaded(self, cluster: Cluster) -> None:
        """After a start everything that was committed is there."""
        self.evictions.loaded(cluster)
        for job in self.accepted:
            if job not in cluster.jobs and not self.may_be_gone(job):
                raise Violation(f"accepted job {job} is lost over a restart", job, "coordinator")
        for execution in self._records:
            if execution.partition("-")[0] not in cluster.jobs:
                continue
            here, committed = lasting([cluster.executions[execution], self._records[execution]])
            if here != committed:
                raise Violation(f"{execution} is not as it was committed", execution.partition("-")[0])

    def committed(self, changes: tuple[Change, ...]) -> None:
        self.taints.committed(changes)
        before = self._cordoned
        self._cordoned = cordoned_after(before, changes)
        gone = {change.node for change in changes if isinstance(change, DropNode)}
        for node in before - self._cordoned - self.uncordoned - gone:
            raise Violation(f"the cordon of {node} is forgotten", node)
        for change in changes:
            match change:
                case DropJob(job=job):
                    self._drop(job)
                case Put(record=Execution() as execution):
                    self._check_execution(execution, before & self._cordoned)
                case Put(record=Attempt() as attempt):
                    self._check_attempt(attempt)
                case Put(record=Job() as job):
                    self._check_unused(job)
                    self._jobs[job.id] = job
                case Put(record=Node() as joined):
                    self._known_nodes[joined.name] = joined
                case Put(record=Project() as project):
                    self._projects.add(project.name)
                case DropProject(project=name):
                    self._projects.discard(name)
        self._check_calendar(changes)
        assert self.calendar.clock is not None
        self.spending.committed(changes, self.calendar.clock.now)

    def _check_calendar(self, changes: tuple[Change, ...]) -> None:
        """Look at the attempts once all executions are known."""
        for change in changes:
            match change:
                case Put(record=Attempt() as attempt):
                    self.calendar.see_attempt(self._jobs[attempt.job], attempt)
                    if attempt.goal is Goal.PREPARE and attempt.attempt_id not in self._placed:
                        self._placed.add(attempt.attempt_id)
                        nodes = self._nodes_of(attempt)
                        self.calendar.see_placement(self._jobs[attempt.job], attempt, nodes)
                        check_places(self._jobs[attempt.job], attempt.placed_at, nodes)

    def _nodes_of(self, attempt: Attempt) -> list[Node]:
        """What is stored of the nodes of an attempt."""
        size = self._jobs[attempt.job].spec.size
        members = (self._records[execution_id(attempt.job, attempt.number, rank)] for rank in range(size))
        return [self._known_nodes[member.node] for member in members if member.node in self._known_nodes]

    def _check_unused(self, after: Job) -> None:
        """A job that is stopped because nobody uses it was used by nobody, as far as anybody can have heard of it."""
        before = self._jobs.get(after.id)
        if not after.stop_reason or (before is not None and before.stop_reason):
            return
        self.unused += 1
        limit = self._attempts[after.id, after.attempt].idle_limit(after.spec.timeouts.idle)
        if limit is None:
            raise Violation(f"{after.id} is stopped as unused, though it has no such limit", after.id)
        begin, end = self._world.at - round(limit.total_seconds() * SECOND), self._world.at - UNHEARD
        for rank in range(after.spec.size):
            sandbox = self._newest.get(execution_id(after.id, after.attempt, rank))
            used = [] if sandbox is None or not sandbox.running else [at for at in sandbox.used if begin < at < end]
            if used:
                since = (self._world.at - used[-1]) / SECOND
                raise Violation(
                    f"{after.id} is stopped as unused, but rank {rank} was used {since:.0f} s ago", after.id
                )

    def may_be_gone(self, job: JobId) -> bool:
        """Whether a job that was accepted need not be there any more."""
        return job in self.deletable or job in self._forgotten

    def _drop(self, job: JobId) -> None:
        if self.calendar.see_forgotten(self._jobs[job]):
            self._forgotten.add(job)
        elif job not in self.deletable:
            raise Violation(f"{job} is dropped, though nobody asked for it", job)
        self._records = {each: record for each, record in self._records.items() if record.job != job}
        self._jobs.pop(job, None)

    def _check_attempt(self, attempt: Attempt) -> None:
        key = attempt.attempt_id
        before = self._attempts.get(key)
        self._attempts[key] = attempt
        check_restores(self._jobs[attempt.job].spec, attempt, self._newest)
        if before is not None and before.failure is not None and attempt.failure != before.failure:
            raise Violation(f"the first failure of {attempt.job} changes", attempt.job)

    def _check_execution(self, after: Execution, closed: frozenset[NodeId]) -> None:
        before = self._records.get(after.id)
        self._records[after.id] = after
        self.calendar.see_execution(self._jobs[after.job], before, after)
        if after.state in TERMINAL and (before is None or before.state not in TERMINAL):
            self.taints.see_ended(after)
        about = (after.job, *(() if after.node is None else (after.node,)))
        if before is not None:
            _check_change(before, after, about)
        if before is not None and before.state in NOT_PLACED and after.state in PROGRESS[1:]:
            self._check_seat(after, about)
            self.taints.check_placed(after, self._jobs[after.job].spec)
            if after.node in closed:
                raise Violation(f"{after.id} is placed on {after.node}, which is cordoned", *about)
        check_outputs(before, after, self._newest.get(after.id))
        self._check_belief(after, None if before is None else before.address, about)

    def _check_seat(self, after: Execution, about: tuple[str, ...]) -> None:
        spec = self._jobs[after.job].spec
        role = spec.role_of(after.rank)
        ports = _fixed_ports(after.node, role, after.rank, spec.network)
        if (found := self._used.in_the_way(role.resources, after.gpus, ports)) is not None:
            raise Violation(f"{after.id} is given {found[0]}, which {found[1]} uses", *about)

    def _check_belief(self, after: Execution, known: str | None, about: tuple[str, ...]) -> None:
        """What the coordinator says of an execution is no further than what is true."""
        running = after.id in self._running.get(after.job, {})
        if running and after.state is State.LOST:
            self._check_loss(after, about)
        if running and after.state in TERMINAL - {State.LOST}:
            raise Violation(f"{after.id} counts as {after.state}, but its user code runs", *about)
        if after.exit is not None and after.exit != self._exits.get(after.id):
            raise Violation(f"{after.id} has {after.exit}; in truth it has {self._exits.get(after.id)}", *about)
        if after.state is State.SUCCEEDED and (after.exit is None or after.exit.code != 0):
            raise Violation(f"{after.id} succeeded with {after.exit}", *about)
        sandbox = self._newest.get(after.id)
        about_to = sandbox is not None and sandbox.start_noted
        if after.state is State.RUNNING and after.id not in self._started and not about_to:
            raise Violation(f"{after.id} counts as running, but its user code was not started", *about)
        if known is None and after.address is not None and sandbox is not None and after.ports != sandbox.ports:
            raise Violation(f"{after.id} counts as having other ports than it holds", *about)

    def _check_loss(self, after: Execution, about: tuple[str, ...]) -> None:
        """What counts as lost may run on only if nobody has promised that it is dead by then."""
        self.lost_while_running += 1
        stops = self._newest[after.id].assignment.fence.on_disconnect is OnDisconnect.STOP
        if stops or (self._scenario.dead_when_lost and self._may_be_followed(after)):
            raise Violation(f"{after.id} counts as lost and must be dead by then, but its user code runs", *about)

    def _may_be_followed(self, execution: Execution) -> bool:
        """Whether another attempt may come, so that peers that went on together would run beside it."""
        job, attempt = self._jobs[execution.job], self._attempts[execution.attempt_id]
        return job.stop_requested_at is None and (attempt.goal is not Goal.STOP or attempt.failure is not None)

    # the end

    def check_log(self, execution: Execution, kept: int) -> None:
        """The coordinator says that it has all of a log; so it must."""
        sandbox = self._newest.get(execution.id)
        if sandbox is None or sandbox.swept:
            return
        printed = sandbox.behaviour.log if sandbox.started else 0
        if kept != printed:
            raise Violation(f"{execution.id} printed {printed} bytes, {kept} are kept", execution.job)

    @property
    def live_code(self) -> list[ExecutionId]:
        return [execution for running in self._running.values() for execution in running]


def _check_members(order: Assignment, members: Sequence[Member], about: tuple[str, ...]) -> None:
    if len(members) != order.world_size:
        raise Violation(f"a roster of {order.job} has {len(members)} members, not {order.world_size}", *about)
    places = [(member.address, lease.host_port) for member in members for lease in member.ports]
    if len(set(places)) != len(places):
        raise Violation(f"two members of {order.job} have the same port", *about)
    if any(not member.address for member in members):
        raise Violation(f"a member of {order.job} has no address", *about)


def _fixed_ports(node: NodeId | None, role: Role, rank: int, network: Network) -> tuple[str, ...]:
    """Ports of a node that an execution has to itself there."""
    numbers = (request.port for request in ports_of(role, rank, network) if request.port is not None)
    return tuple(f"port {number} of {node}" for number in numbers) if network is Network.HOST else ()


def _check_change(before: Execution, after: Execution, about: tuple[str, ...]) -> None:
    if before.exit is not None and after.exit != before.exit:
        raise Violation(f"the exit of {after.id} changes from {before.exit} to {after.exit}", *about)
    if before.state in TERMINAL and after.state is not before.state:
        raise Violation(f"{after.id} was {before.state} and is {after.state}", *about)
    if before.state in PROGRESS and after.state in PROGRESS[: PROGRESS.index(before.state)]:
        raise Violation(f"{after.id} goes back from {before.state} to {after.state}", *about)
    if before.node is not None and (after.node, after.gpus) != (before.node, before.gpus):
        raise Violation(f"{after.id} moves from {before.node} to {after.node}", *about)


def _job_of(change: Change) -> JobId | None:
    match change:
        case Put(record=Job() as job):
            return job.id
        case Put(record=Attempt() as record) | Put(record=Execution() as record):
            return record.job
    return None


def _words(error: AssertionError) -> list[str]:
    """Whatever in the message may name a job or a node."""
    return re.findall(r"node-\d+|j\d+", str(error))


def _about(node: SimulatedNode, sandbox: Sandbox) -> tuple[str, ...]:
    return (node.name, sandbox.assignment.job)
