"""Short ways to say what a test of the coordinator's core is about; what it does not care about is filled in."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from coordinator.core.answers import Accepted, Answer, QuotasSet
from coordinator.core.attempts.history import remembered
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.effects import Effect, SendPlan
from coordinator.core.events import (
    DeleteRequested,
    Event,
    ExecutionsReported,
    HeartbeatReceived,
    InventoryChanged,
    JobSubmitted,
    NodeConnected,
    NodeDisconnected,
    QuotasChanged,
    StopRequested,
    TimePassed,
)
from coordinator.core.loading import load
from coordinator.core.notes import Note
from coordinator.core.placement.bins import Capacities
from coordinator.core.placement.candidates import Available
from coordinator.core.placement.capacity import Capacity
from coordinator.core.records import Attempt, Execution, Put, Record
from coordinator.core.requests.quotas import unit_of
from coordinator.core.step import finish, step
from coordinator.core.turn import plans
from coordinator.core.turn.turn import Turn
from coordinator.store.records.memory import MemoryStore
from coordinator.store.store import snapshot_of
from coordinator.story.changes import event_changes
from coordinator.story.moves import told
from muster.domain.fleet.access import Project
from muster.domain.fleet.features import ALL_FEATURES
from muster.domain.fleet.node import Gpu, Inventory, RuntimeOffer
from muster.domain.fleet.quota import AmountBounds, QuotaTerms, QuotaUnit, UnitChange, UnitKind, UnitTerms
from muster.domain.gangs.plan import Assignment, Desired, Goal, Plan, Report, Stage
from muster.domain.gangs.roster import MASTER_PORT_NAME, PortLease, Roster
from muster.domain.ids import AttemptId, ExecutionId, GpuUuid, JobId, NodeId
from muster.domain.jobs.failure import Exit, Failure, FailureKind
from muster.domain.jobs.job import DEFAULT_PROJECT, JobSpec, PortRequest, Resources, Role, RuntimeKind, Timeouts
from muster.domain.jobs.lifecycle import JobPhase, State
from tests.invariants import Witness, validate
from tests.lasting_records import LastingRecords
from tests.spending_invariants import SpendingWitness

AT = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
GIB = 2**30
OFFERS = (RuntimeOffer(kind=RuntimeKind.DOCKER), RuntimeOffer(kind=RuntimeKind.PROCESS))


def gpu(node: str, index: int, model: str = "NVIDIA H100", **fields: object) -> Gpu:
    known = {"uuid": GpuUuid(f"GPU-{node}-{index}"), "index": index, "model": model, "memory": 80 * GIB}
    return Gpu(**{**known, **fields})  # type: ignore[arg-type]  # a builder takes any field


def gpus(node: str, count: int, model: str = "NVIDIA H100") -> tuple[Gpu, ...]:
    return tuple(gpu(node, index, model) for index in range(count))


def mig_devices(node: str, *profiles: str, index: int = 0) -> tuple[Gpu, ...]:
    """The MIG devices of one GPU of a node; their UUIDs end with the GPU's index and their place."""
    return tuple(
        gpu(node, index, f"NVIDIA H100 MIG {each}", uuid=GpuUuid(f"MIG-{node}-{index}-{place}"), mig=each)
        for place, each in enumerate(profiles)
    )


def inventory(node: str, count: int = 0, *, cpus: int = 64, memory: int = 512 * GIB, **fields: object) -> Inventory:
    """The inventory of a node with so many GPUs."""
    known = {"cpus": cpus, "memory": memory, "gpus": gpus(node, count), "runtimes": OFFERS}
    return Inventory(**{**known, **fields})  # type: ignore[arg-type]  # a builder takes any field


def capacity(node: str, count: int = 0, *, cpus: float = 64, memory: int = 512 * GIB, **fields: object) -> Capacity:
    """A node with so many free GPUs."""
    known = {
        "node": NodeId(node),
        "gpus": gpus(node, count),
        "cpu_millis": int(cpus * 1000),
        "memory": memory,
        "runtimes": OFFERS,
    }
    return Capacity(**{**known, **fields})  # type: ignore[arg-type]  # a builder takes any field


def available(*capacities: Capacity) -> Available:
    """Rooms to place a gang in."""
    return Available(capacities=Capacities(capacities))


def role(
    count: int = 1,
    gpus: int = 0,
    *,
    name: str = "worker",
    cpus: float = 1,
    image: str | None = None,
    ports: Mapping[str, int | None] | None = None,
    **resources: Any,
) -> Role:
    need = Resources(gpus=gpus, cpu_millis=int(cpus * 1000), **resources)
    asked = tuple(PortRequest(name=each, port=number) for each, number in (ports or {}).items())
    return Role(name=name, count=count, image=image, command=("train",), resources=need, ports=asked)


def spec(count: int = 2, gpus: int = 0, *, cpus: float = 1, memory: int | None = None, **fields: object) -> JobSpec:
    """A job of identical executions, unless it is given roles."""
    known = {"name": "train", "project": "default", "roles": (role(count, gpus, cpus=cpus, memory=memory),)}
    return JobSpec(**{**known, **fields})  # type: ignore[arg-type]  # a builder takes any field


def limits(*, check_in: float = 600, run: float | None = None) -> Timeouts:
    seconds = None if run is None else timedelta(seconds=run)
    return Timeouts(check_in=timedelta(seconds=check_in), run=seconds)


def report(execution: ExecutionId, stage: Stage, **fields: object) -> Report:
    """A report with address and port from PREPARED on, and an exit code of 0 or the reason of a failure where it
    needs one.
    """
    known: dict[str, object] = {"execution": execution, "stage": stage, "at": AT}
    if stage not in {Stage.PREPARING, Stage.STOPPED, Stage.FAILED}:
        known |= {"address": "10.0.0.1", "ports": (PortLease(name=MASTER_PORT_NAME, host_port=1, container_port=1),)}
    if stage is Stage.EXITED:
        known["exit"] = Exit(code=0)
    if stage is Stage.FAILED:
        known["failure"] = Failure(kind=FailureKind.IMAGE, message="no such image")
    return Report(**{**known, **fields})  # type: ignore[arg-type]  # a builder takes any field


class Follower:
    """What an agent makes of the plans that it is sent."""

    def __init__(self) -> None:
        self.plans: list[Plan] = []
        self.revision = 0
        self.desired: dict[ExecutionId, Desired] = {}
        self.assignments: dict[ExecutionId, Assignment] = {}
        self.rosters: dict[tuple[JobId, int], Roster] = {}

    @property
    def goals(self) -> dict[ExecutionId, Goal]:
        return {execution: line.goal for execution, line in self.desired.items()}

    def apply(self, plan: Plan) -> bool:
        """Apply a plan as agents do: a whole one always, a change only to the revision that it builds on."""
        self.plans.append(plan)
        if plan.base not in {0, self.revision}:
            return False
        self.revision = plan.revision
        if plan.base == 0:
            self.desired.clear()
        for line in plan.desired:
            self.desired[line.execution] = line
            if line.assignment is not None:
                self.assignments[line.execution] = line.assignment
        for execution in plan.removed:
            self.desired.pop(execution, None)
        self.rosters.update({roster.attempt_id: roster for roster in plan.rosters})
        return True


def quota_unit(name: str, kind: UnitKind, department: str = "", **terms: Any) -> QuotaUnit:
    """A department or a project with terms for all pools; quota and limit are whole GPUs."""
    for bound in ("quota", "limit"):
        if bound in terms:
            terms[bound] = AmountBounds(gpus=terms[bound] * 1000)
    return QuotaUnit(name=name, kind=kind, department=department, terms=UnitTerms(everywhere=QuotaTerms(**terms)))


class World:
    """A coordinator's core between a store and agents, all driven by hand; holds the invariants after each turn."""

    def __init__(self, *nodes: tuple[str, int], projects: Iterable[str] = (DEFAULT_PROJECT,)) -> None:
        """Nodes by name and number of GPUs, all of them connected; and projects."""
        self.now = AT
        self.store = MemoryStore()
        self.store.commit(puts_of(projects))
        self.cluster = reload(self.store, AT)
        self.effects: list[Effect] = []
        self.notes: list[Note] = []
        """What all turns have noted."""
        self.followers: dict[NodeId, Follower] = {}
        self.undelivered: set[NodeId] = set()
        """Nodes whose plans get lost on the way."""
        self._witness = Witness()
        self._spending = SpendingWitness()
        self._lasting = LastingRecords()
        self._sessions = 0
        self._jobs = 0
        for name, count in nodes:
            self.connect(name, inventory(name, count))

    def turn(self, *events: Event) -> list[Answer]:
        """One turn of the engine with these events."""
        turn = Turn(self.cluster, self.now)
        answers = [step(turn, event) for event in events]
        finish(turn)
        stored, before = self._lasting.of(remembered(stored_records(self.store)), turn.before())
        assert snapshot_of(before) == snapshot_of(stored), "a turn does not know what was before it"
        changes = (*turn.changes(), *event_changes(self.cluster, told(turn.notes.taken), self.now))
        self.store.commit(changes)
        self.notes += turn.notes.taken
        self.effects = list(turn.take_effects())
        for effect in self.effects:
            if isinstance(effect, SendPlan) and effect.node not in self.undelivered:
                self.followers.setdefault(effect.node, Follower()).apply(effect.plan)
        if changes or self.effects:  # most heartbeats change nothing; if they broke something, the next turn shows it
            self._check()
        return answers

    def _check(self) -> None:
        validate(self.cluster, self.now)
        self._witness.see(self.cluster)
        self._spending.see(self.cluster, self.store.spent, self.now)
        for node in self.cluster.presence:
            presence = self.cluster.presence[node]
            if presence.session is not None and node not in self.undelivered:
                wanted = {each.id: plans.goal(self.cluster, each) for each in self.cluster.load.planned(node)}
                # What it may clear away it will hear later.
                told = {key: goal for key, goal in self.followers[node].goals.items() if key not in presence.dismissed}
                # Nothing is left to do about one that ended well, so its agent is not told to stop it.
                well = {each.id: Goal.STOP for each in self.cluster.load.planned(node) if each.state is State.SUCCEEDED}
                assert {**told, **well} == wanted, f"{node} was told something else than is wanted"
                assert told.keys() == wanted.keys(), f"{node} was told of others than are wanted"

    # events

    def connect(
        self,
        node: str,
        having: Inventory | None = None,
        reports: Iterable[Report] = (),
        identity: str = "",
        features: frozenset[str] = ALL_FEATURES,
    ) -> Answer:
        """An agent opens a stream and says what it has (by default: what it had) and runs."""
        self._sessions += 1
        name = NodeId(node)
        if having is None:
            having = self.cluster.nodes[name].inventory
        event = NodeConnected(
            node=name,
            session=self._sessions,
            identity=identity or f"identity of {node}",
            version="0.1",
            address=f"address-of-{node}",
            peer_port=20000,
            features=features,
            inventory=having,
            reports=tuple(reports),
        )
        return self.turn(event)[0]

    def disconnect(self, node: str) -> None:
        session = self.cluster.presence[NodeId(node)].session
        assert session is not None
        self.turn(NodeDisconnected(node=NodeId(node), session=session))

    def change_inventory(self, node: str, **fields: Any) -> None:
        changed = replace(self.cluster.nodes[NodeId(node)].inventory, **fields)
        self.turn(InventoryChanged(node=NodeId(node), inventory=changed))

    def submit(self, wanted: JobSpec, **fields: object) -> JobId:
        """An accepted job."""
        answer = self.try_submit(wanted, **fields)
        assert isinstance(answer, Accepted), answer
        return answer.job.id

    def try_submit(self, wanted: JobSpec, **fields: object) -> Answer:
        return self.turn(self.submission(wanted, **fields))[0]

    def submission(self, wanted: JobSpec, **fields: Any) -> JobSubmitted:
        self._jobs += 1
        return JobSubmitted(job=JobId(f"j{self._jobs:03}"), spec=wanted, **fields)

    def change_units(self, *units: QuotaUnit) -> Answer:
        """Departments and projects get these terms, whatever they had; departments that are not there are made."""
        changes = tuple(UnitChange(before=unit_of(self.cluster, unit.name), after=unit) for unit in units)
        return self.turn(QuotasChanged(changes=changes))[0]

    def promise(self, project: str, **terms: Any) -> None:
        """A project gets terms for all pools, in whole GPUs, and no others; `department` says where it belongs."""
        department = terms.pop("department", "")
        answer = self.change_units(quota_unit(project, UnitKind.PROJECT, department, **terms))
        assert isinstance(answer, QuotasSet), answer

    def stop(self, job: JobId) -> Answer:
        return self.turn(StopRequested(job=job))[0]

    def delete(self, job: JobId, *, force: bool = False) -> Answer:
        return self.turn(DeleteRequested(job=job, force=force))[0]

    def tell(self, job: JobId, rank: int, stage: Stage, **fields: object) -> None:
        """A rank's own node reports, in the newest attempt."""
        execution = self.rank(job, rank).id
        node = self.cluster.executions[execution].node
        assert node is not None
        self.turn(ExecutionsReported(node=node, reports=(report(execution, stage, **fields),)))

    def tell_all(self, job: JobId, *stages: Stage, **fields: object) -> None:
        """Every rank comes to each of these stages, one by one."""
        for stage in stages:
            for rank in range(self.cluster.jobs[job].spec.size):
                self.tell(job, rank, stage, **fields)

    def heartbeat(self, node: str, revision: int | None = None) -> None:
        """Send a heartbeat, by default with the revision that the agent really has."""
        self.turn(self.beat(NodeId(node), revision))

    def beat(self, node: NodeId, revision: int | None = None) -> HeartbeatReceived:
        """A heartbeat that is not sent yet."""
        applied = self.followers[node].revision if revision is None else revision
        return HeartbeatReceived(node=node, plan_revision=applied)

    def advance(self, seconds: float) -> None:
        """Time passes; the core is woken at each of its deadlines on the way."""
        end = self.now + timedelta(seconds=seconds)
        while (due := self.cluster.deadlines.next_at) is not None and due <= end:
            self.now = max(self.now, due)
            self.turn(TimePassed())
        self.now = end

    def restart(self) -> None:
        """The coordinator ends and another one starts on the same store; all streams are gone."""
        self.cluster = reload(self.store, self.now)
        self._check()

    # what has come of it

    def running(self, wanted: JobSpec) -> JobId:
        """A job that was brought as far as running."""
        job = self.submit(wanted)
        self.tell_all(job, Stage.PREPARING, Stage.PREPARED, Stage.ARMED, Stage.RUNNING)
        return job

    def phase(self, job: JobId) -> JobPhase:
        return self.cluster.phase(job)

    def attempt(self, job: JobId) -> Attempt:
        return self.cluster.newest_attempt(job)

    def rank(self, job: JobId, rank: int) -> Execution:
        return self.cluster.gangs.rank(AttemptId(job, self.cluster.jobs[job].attempt), rank)

    def states(self, job: JobId) -> list[State]:
        """The states by rank."""
        return [member.state for member in self.cluster.gangs.members(AttemptId(job, self.cluster.jobs[job].attempt))]

    def seat(self, job: JobId, rank: int = 0) -> NodeId:
        """The node of one execution that has one."""
        node = self.rank(job, rank).node
        assert node is not None
        return node

    def seats(self, job: JobId) -> list[str | None]:
        """The nodes by rank."""
        return [member.node for member in self.cluster.gangs.members(AttemptId(job, self.cluster.jobs[job].attempt))]

    def last_plan(self, node: str) -> Plan:
        return self.followers[NodeId(node)].plans[-1]


def puts_of(projects: Iterable[str]) -> list[Put]:
    """What stores projects of these names."""
    return [Put(record=Project(name=name, created_at=AT)) for name in projects]


def reload(store: MemoryStore, now: datetime) -> Cluster:
    """The cluster of a coordinator that starts on what is stored."""
    return load(stored_records(store), now)


def stored_records(store: MemoryStore) -> tuple[Record, ...]:
    """All that is stored."""
    return store.load().records


def pass_time(world: World, seconds: int, *silent: NodeId) -> None:
    """Time passes; all nodes but these say that they are alive."""
    for _ in range(seconds // 10):
        world.advance(10)
        alive = (node for node in world.cluster.nodes if world.cluster.presence[node].session is not None)
        beats = [world.beat(node) for node in alive if node not in silent]
        if beats:
            world.turn(*beats)
