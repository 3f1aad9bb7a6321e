"""Whatever happens, in whatever order: the invariants hold, nothing raises, nothing is forgotten, every job ends."""

from collections.abc import Callable
from datetime import timedelta
from random import Random

import pytest

from coordinator.core.answers import Accepted
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.events import ProjectAdded, ProjectRemoved
from muster.domain.ids import ExecutionId, JobId, NodeId
from muster.domain.jobs.lifecycle import SuccessRule
from muster.domain.jobs.restart import RestartPolicy
from tests.builders import World, gpu, gpus, limits, reload, role, spec
from tests.invariants import fits_into_its_nodes
from tests.lasting_records import lasting
from tests.unit.coordinator.core.obedient_agents import Agent

NODES = {"a": 1, "b": 2, "c": 2}
SPECS = (
    spec(1, gpus=1, timeouts=limits(run=30)),
    spec(1, gpus=1, timeouts=limits(check_in=30)),
    spec(2, gpus=1, success=SuccessRule.RANK0),
    spec(1, gpus=2, timeouts=limits(check_in=60, run=20)),
    spec(3, gpus=1, max_per_node=1, timeouts=limits(check_in=30)),
    spec(roles=(role(1, name="master"), role(4, 1)), priority=1),
    spec(2, cpus=20),
    spec(1, gpus=1, restarts=RestartPolicy(limit=2, infrastructure=2, backoff=timedelta(seconds=5))),
    spec(2, gpus=1, max_per_node=1, restarts=RestartPolicy(limit=2, infrastructure=2)),
)
ROUNDS = 400
"""After which everything must have come to an end."""

STEPS = 150
SEEDS = 40


class Course:
    """A coordinator, three nodes, and everything that clients, agents, networks and time can do to them."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.world = World(*NODES.items())
        self.agents = [Agent(self.world, NodeId(node)) for node in NODES]
        self.submitted: list[JobId] = []
        self.haste = 0.1
        """How soon user code ends."""

    def go_on(self) -> None:
        """One more thing happens."""
        (happening,) = self.chance.choices(list(HAPPENINGS), weights=list(HAPPENINGS.values()))
        happening(self)
        fits_into_its_nodes(self.world.cluster)
        self._one_attempt_of_a_job_runs()

    def _one_attempt_of_a_job_runs(self) -> None:
        running = {attempt for agent in self.agents for attempt in agent.running_attempts()}
        assert len({job for job, _ in running}) == len(running), f"two attempts of a job run: {running}"

    # clients

    def submit(self) -> None:
        wanted = self.chance.choice(SPECS)
        key = self.chance.choice(["", "", f"key of {SPECS.index(wanted)}"])
        self.submitted.append(self.world.submit(wanted, idempotency_key=key))

    def a_project_is_added_removed_or_used(self) -> None:
        """What is asked of a project that comes and goes; much of it is refused."""
        name = "vision"
        wanted = (ProjectAdded(name=name), ProjectRemoved(name=name), ProjectRemoved(name="default"))
        event = self.chance.choice((*wanted, self.world.submission(spec(1, gpus=1, project=name))))
        [answer] = self.world.turn(event)
        if isinstance(answer, Accepted):
            self.submitted.append(answer.job.id)

    def stop(self) -> None:
        if self.submitted:
            self.world.stop(self.chance.choice(self.submitted))

    def delete(self) -> None:
        if self.submitted:
            self.world.delete(self.chance.choice(self.submitted), force=self.chance.random() < 0.5)

    # agents

    def work(self) -> None:
        """An agent does something for one execution, and usually it gets told; code runs for a while."""
        agent = self._anybody()
        if to_do := agent.to_do():
            self._work(agent, self.chance.choice(to_do))
        if self.chance.random() < 0.8:
            self._deliver(agent)

    def everybody_works(self) -> None:
        for agent in self.agents:
            for name in agent.to_do():
                self._work(agent, name)
            if agent.connected and agent.outgoing:
                agent.deliver_all()

    def _work(self, agent: Agent, name: ExecutionId) -> None:
        if not agent.runs_code(name) or self.chance.random() < self.haste:
            agent.work(name, code=self.chance.choice([0, 0, 0, 1, 137]))

    def fail(self) -> None:
        agent = self._anybody()
        if agent.locals:
            agent.fail(self.chance.choice(list(agent.locals)))

    def deliver_one(self) -> None:
        self._deliver(self._anybody())

    def repeat(self) -> None:
        agent = self._anybody()
        if agent.connected and agent.sent:
            agent.repeat(self.chance.randrange(1000))

    def _deliver(self, agent: Agent) -> None:
        if agent.connected and agent.outgoing:
            agent.deliver(self.chance.randrange(1000))

    # networks, machines, time

    def lose_a_connection(self) -> None:
        agent = self._anybody()
        if agent.connected:
            self.world.disconnect(agent.node)

    def connect(self) -> None:
        self._anybody().connect()

    def restart_an_agent(self) -> None:
        self._anybody().restart()

    def restart_the_coordinator(self) -> None:
        """Restart the coordinator. It forgets nothing that counts; its agents come back, or most of them."""
        before = facts(self.world.cluster)
        self.world.restart()
        assert facts(self.world.cluster) == before
        for agent in self.agents:
            if self.chance.random() < 0.8:
                agent.connect()

    def a_gpu_breaks_or_recovers(self) -> None:
        agent = self._anybody()
        first = gpu(agent.node, 0, problems=self.chance.choice([(), ("lost",)]))
        if agent.connected:
            self.world.change_inventory(agent.node, gpus=(first, *gpus(agent.node, NODES[agent.node])[1:]))

    def time_passes(self) -> None:
        self._wait(self.chance.choice([1, 10, 31, 61]))

    def a_node_is_away_for_long(self) -> None:
        agent = self._anybody()
        if agent.connected:
            self.world.disconnect(agent.node)
        self._wait(100)
        agent.connect()

    def _wait(self, seconds: int) -> None:
        """Time passes, and who is connected says that it is alive."""
        for _ in range(seconds // 10):
            self.world.advance(10)
            for agent in self.agents:
                if agent.connected:
                    self.world.heartbeat(agent.node)
        self.world.advance(seconds % 10)

    # the end

    def end_well(self) -> None:
        """When all behave well in the end, every job ends, its logs are complete, and nothing is left anywhere."""
        self.haste = 1.0
        for agent in self.agents:
            agent.connect()
            self.world.change_inventory(agent.node, gpus=gpus(agent.node, NODES[agent.node]))
        for _ in range(ROUNDS):
            if not self._left():
                break
            self.everybody_works()
            self.world.advance(1)
            for agent in self.agents:
                self.world.heartbeat(agent.node)
        assert self._left() == []
        assert all(self.world.cluster.load.used(agent.node).executions == set() for agent in self.agents)
        assert facts(reload(self.world.store, self.world.now)) == facts(self.world.cluster)

    def _left(self) -> list[str]:
        live = [job.id for job in self.world.cluster.jobs.values() if job.ended_at is None]
        return live + [name for agent in self.agents for name in (*agent.to_do(), *agent.plan.goals)]

    def _anybody(self) -> Agent:
        return self.chance.choice(self.agents)


HAPPENINGS: dict[Callable[[Course], None], int] = {
    Course.submit: 6,
    Course.a_project_is_added_removed_or_used: 4,
    Course.stop: 1,
    Course.delete: 1,
    Course.work: 40,
    Course.everybody_works: 4,
    Course.fail: 1,
    Course.deliver_one: 8,
    Course.repeat: 4,
    Course.lose_a_connection: 1,
    Course.connect: 3,
    Course.restart_an_agent: 1,
    Course.restart_the_coordinator: 1,
    Course.a_gpu_breaks_or_recovers: 1,
    Course.time_passes: 2,
    Course.a_node_is_away_for_long: 1,
}
"""What happens, and how often."""


def facts(cluster: Cluster) -> dict[str, object]:
    """Everything that must survive a restart."""
    return {
        "jobs": cluster.jobs,
        "attempts": dict(zip(cluster.attempts, lasting(cluster.attempts.values()), strict=True)),
        "executions": dict(zip(cluster.executions, lasting(cluster.executions.values()), strict=True)),
        "nodes": cluster.nodes,
        "projects": cluster.projects,
        "queue": [job.id for job in cluster.queue],
        "usage": {node: cluster.load.used(node) for node in cluster.nodes},
        "planned": {node: {each.id for each in cluster.load.planned(node)} for node in cluster.nodes},
        "phases": {job: cluster.phase(job) for job in cluster.jobs},
    }


@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_happens_the_invariants_hold_and_every_job_ends(seed: int) -> None:
    course = Course(Random(seed))
    for _ in range(STEPS):
        course.go_on()
    course.end_well()
