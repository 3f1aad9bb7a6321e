"""One seed from its first event to the rest at its end."""

import traceback
from collections import Counter
from dataclasses import dataclass

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.records import Job
from coordinator.core.scheduling.cycle import possible, refusal
from muster.domain.ids import JobId, NodeId
from muster.domain.jobs.lifecycle import JobPhase
from tests.simulation.agent_program import AgentProgram
from tests.simulation.clients import Clients
from tests.simulation.coordinator_program import CoordinatorProgram
from tests.simulation.cores import REAL, Cores
from tests.simulation.families import draw
from tests.simulation.faults import Faults
from tests.simulation.holders import Holders
from tests.simulation.peers import Peers
from tests.simulation.project_admin import ProjectAdmin
from tests.simulation.quota_admin import QuotaAdmin
from tests.simulation.scenario import SMALL, Scale
from tests.simulation.taint_admin import TaintAdmin
from tests.simulation.truth import SimulatedNode
from tests.simulation.watcher import Watcher
from tests.simulation.window_admin import WindowAdmin
from tests.simulation.world import SECOND, Clock, Violation, World

REST_WITHIN = 2 * 3600.0
"""Seconds after the last fault within which everything must have come to rest."""
STORY = 120
"""Lines of the story of a failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a seed went."""

    seed: int
    fingerprint: str
    happened: int
    """Events of the world."""
    virtual_seconds: float
    sights: Counter[str]
    """What there was to see at the end: states, phases, failures and how often each."""
    problem: str | None = None
    story: tuple[str, ...] = ()


class Simulation:
    """A fleet, its coordinator, its clients and its troubles."""

    def __init__(self, seed: int, scale: Scale = SMALL, cores: Cores = REAL, family: str | None = None) -> None:
        self.world = World(seed)
        self.scenario = draw(self.world.chance("scenario"), scale, family)
        self.watcher = Watcher(self.world, self.scenario)
        rates = self.world.chance("clocks")
        self.coordinator = CoordinatorProgram(
            self.world, self.watcher, self.world.chance("coordinator"), cores, self.scenario.clock_rate(rates)
        )
        self.peers = Peers(self.world)
        self.agents: dict[NodeId, AgentProgram] = {}
        for number, parts in enumerate(self.scenario.parts, start=1):
            clock = Clock(self.world, self.scenario.clock_rate(rates))
            node = SimulatedNode(clock, NodeId(f"node-{number}"), parts, self.watcher)
            self.agents[node.name] = AgentProgram(
                clock, node, self.coordinator, self.peers, self.scenario.frailty, cores
            )
        self.watcher.calendar.clock = self.coordinator.clock
        self.clients = Clients(self.world, self.coordinator, self.watcher, self.scenario)
        self.holders = Holders(self.world, self.clients, self.watcher, self.scenario)
        self.window_admin = WindowAdmin(self.world, self.clients, self.coordinator, self.watcher, self.scenario)
        self.taint_admin = TaintAdmin(self.world, self.clients, self.watcher.taints, self.scenario)
        self.quota_admin = QuotaAdmin(self.world, self.clients, self.coordinator, self.scenario)
        self.admin = ProjectAdmin(self.world, self.clients, self.watcher, self.scenario)
        self.faults = Faults(self.world, self.coordinator, self.agents, self.peers, self.clients, self.scenario)

    def run(self) -> Outcome:
        """Play it to its end."""
        try:
            self._trouble()
            self._rest()
            self._check_end()
        except Violation as violation:
            return self._outcome(str(violation), tuple(self.world.story(violation.subjects, STORY)))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told with the seed and the story
            where = traceback.format_exception(error)[-4:]
            return self._outcome(f"{type(error).__name__}: {error}", (*self.world.story((), STORY), *where))
        return self._outcome(None, ())

    def _outcome(self, problem: str | None, story: tuple[str, ...]) -> Outcome:
        return Outcome(
            seed=self.world.seed,
            fingerprint=self.world.fingerprint(),
            happened=self.world.happened,
            virtual_seconds=self.world.seconds,
            sights=self._sights(),
            problem=problem,
            story=story,
        )

    def _sights(self) -> Counter[str]:
        cluster = self.coordinator.cluster
        sights = Counter(f"job {cluster.phase(job)}" for job in cluster.jobs)
        sights.update(f"execution {execution.state}" for execution in cluster.executions.values())
        failures = (attempt.failure for attempt in cluster.attempts.values() if attempt.failure is not None)
        sights.update(f"failure {failure.kind}" for failure in failures)
        sights["job again"] = len(cluster.attempts) - len(cluster.jobs)
        sights["lost while it runs"] = self.watcher.lost_while_running
        sights["fenced"] = self.watcher.fences
        sights["job unused"] = self.watcher.unused
        calendar = self.watcher.calendar
        sights["job suspended"], sights["job forgotten"] = calendar.suspended, calendar.forgotten
        sights["moved by a taint"] = self.watcher.taints.moved
        sights["account"] = self.watcher.spending.accounts
        sights["made room"] = self.watcher.evictions.evicted
        sights["queue timeout"] = calendar.queue_timeouts
        sights["project removed"], sights["project kept"] = self.admin.removed, self.admin.refused
        return sights

    def _trouble(self) -> None:
        self.coordinator.start()
        for agent in self.agents.values():
            self.world.after(agent.node.chance.random() * 3, agent.start)
        self.clients.begin()
        self.admin.begin()
        self.quota_admin.begin()
        self.window_admin.begin()
        self.taint_admin.begin()
        self.faults.begin()
        self.world.run_until(round(self.scenario.seconds * SECOND))
        self.faults.mend()
        self.clients.losses = 0.0

    def _rest(self) -> None:
        """Whatever waits comes to its end, except what can never run; then that is stopped too."""
        end = self.world.at + round(REST_WITHIN * SECOND)
        self._stop_what_is_endless()
        while not self._at_rest(queue_empty=False):
            self._go_on(end)
        self._check_queue()
        for job in list(self.coordinator.cluster.queue):
            self.clients.stop(job.id)
        while not self._at_rest(queue_empty=True):
            self._go_on(end)

    def _go_on(self, end: int) -> None:
        if self.world.at > end:
            raise self._unrest()
        self.world.run_until(self.world.at + 10 * SECOND)

    def _stop_what_is_endless(self) -> None:
        """Again and again clients stop jobs that run on and on."""
        cluster = self.coordinator.cluster
        for job in list(cluster.jobs.values()):
            if job.ended_at is None and cluster.phase(job.id) is JobPhase.RUNNING:
                self.world.after(60.0, lambda job=job: self.clients.stop(job.id))  # type: ignore[misc]  # mypy infers no lambda with a default
        self.world.after(90.0, self._stop_what_is_endless)

    def _at_rest(self, *, queue_empty: bool) -> bool:
        cluster = self.coordinator.cluster
        if self.clients.waiting or not all(self._node_at_rest(agent) for agent in self.agents.values()):
            return False
        live = [job for job in cluster.jobs.values() if job.ended_at is None]
        if any(cluster.phase(job.id) is not JobPhase.QUEUED for job in live) or (live and queue_empty):
            return False
        if any(any(cluster.load.planned(node)) for node in cluster.nodes) or len(cluster.load.windows):
            return False
        now = self.coordinator.clock.now
        return queue_empty or all(
            refusal(cluster, job.id, now) is not None and _has_all_its_pools(cluster, job) for job in live
        )

    def _node_at_rest(self, agent: AgentProgram) -> bool:
        cluster, node = self.coordinator.cluster, agent.node
        if agent.gone:
            return node.name not in cluster.nodes
        if node.sandboxes or agent.state.ledger.reports() or node.name not in cluster.nodes:
            return False
        return cluster.placeable(node.name) is None and cluster.nodes[node.name].inventory == node.inventory()

    def _there(self) -> list[tuple[NodeId, AgentProgram]]:
        return [(name, agent) for name, agent in self.agents.items() if not agent.gone]

    def _unrest(self) -> Violation:
        cluster = self.coordinator.cluster
        jobs = [job.id for job in cluster.jobs.values() if job.ended_at is None]
        words = [f"{job} is {cluster.phase(job)}" for job in jobs]
        for _, agent in self._there():
            node = agent.node.name
            left = list(agent.node.sandboxes) + [execution.id for execution in cluster.load.planned(node)]
            why = cluster.placeable(node) if node in cluster.nodes else "has not joined"
            if node in cluster.nodes and cluster.nodes[node].inventory != agent.node.inventory():
                why = "has another inventory than the coordinator thinks"
            words += [f"{node}: {', '.join(left) or 'empty'}; {why or 'ready'}"] if left or why else []
        return Violation(f"no rest after {REST_WITHIN:g} s: {'; '.join(words)}", *jobs[:3])

    # what must be true in the end

    def _check_queue(self) -> None:
        """Only what could never run still waits."""
        cluster = self.coordinator.cluster
        for job in cluster.queue:
            if possible(cluster, job.spec) is None:
                why = refusal(cluster, job.id, self.coordinator.clock.now)
                raise Violation(f"{job.id} waits though the fleet is idle: {why}", job.id)

    def _check_end(self) -> None:
        cluster = self.coordinator.cluster
        _check_used(cluster)
        if self.watcher.live_code:
            raise Violation(f"user code runs that nobody wants: {self.watcher.live_code}")
        self._check_jobs(cluster)
        self.watcher.spending.at_rest()
        for execution in cluster.executions.values():
            self.watcher.check_log(execution, self.coordinator.logs.get(execution.id, 0))
        self.coordinator.crash()
        self.coordinator.start()

    def _check_jobs(self, cluster: Cluster) -> None:
        for job in self.watcher.accepted:
            if job not in cluster.jobs:
                if not self.watcher.may_be_gone(job):
                    raise Violation(f"accepted job {job} is lost", job)
                continue
            attempt, phase = cluster.newest_attempt(job), cluster.phase(job)
            if not phase.ended:
                raise Violation(f"{job} has not ended: {phase}", job)
            if phase is JobPhase.FAILED and attempt.failure is None:
                raise Violation(f"{job} failed, and nobody says why", job)
            if phase is JobPhase.STOPPED and cluster.jobs[job].stop_requested_at is None and _wanted_back(cluster, job):
                raise Violation(f"{job} was stopped though nobody asked for it", job)


def _wanted_back(cluster: Cluster, job: JobId) -> bool:
    """Whether a job would go on after it had to make room, or did not have to."""
    return cluster.jobs[job].spec.on_preempt.restart or cluster.newest_attempt(job).preempted_for is None


def _has_all_its_pools(cluster: Cluster, job: Job) -> bool:
    """Whether a queued job goes by now to every pool that it names."""
    return len(cluster.queue.request_class(job.id).pools or ()) == len(job.spec.pools)


def _check_used(cluster: Cluster) -> None:
    if claims := list(cluster.load.claims):
        raise Violation(f"nothing waits, but {claims[0]} claims seats", claims[0])
    for node in cluster.nodes:
        used = cluster.load.used(node)
        if used.gpus or used.cpu_millis or used.memory or used.disk or used.executions or used.ports:
            raise Violation(f"nothing runs on {node}, but the coordinator thinks of {used}", node)
