"""Whatever happens, in whatever order: the invariants hold, nothing raises, nothing is forgotten, every job ends."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from coordinator.core.cluster import Cluster
from muster.domain.ids import ExecutionId, JobId, NodeId
from muster.domain.lifecycle import SuccessRule
from tests.builders import World, gpu, gpus, limits, reload, role, spec
from tests.invariants import fits_into_its_nodes
from tests.unit.coordinator.obedient_agents import Agent

NODES = {"a": 2, "b": 2, "c": 4}
SPECS = (
    spec(1, gpus=1),
    spec(2, gpus=1, success=SuccessRule.RANK0),
    spec(2, gpus=2, timeouts=limits(check_in=60, run=120)),
    spec(3, gpus=2, max_per_node=1, timeouts=limits(check_in=30)),
    spec(roles=(role(1, name="master"), role(4, 1)), priority=1),
    spec(2, cpus=20),
)
ROUNDS = 400
"""After which everything must have come to an end."""

numbers = st.integers(0, 1000)


def pick(things: list[str], number: int) -> str:
    return things[number % len(things)]


class Course(RuleBasedStateMachine):
    """A coordinator, three nodes, and everything that clients, agents, networks and time can do to them."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(*NODES.items())
        self.agents = [Agent(self.world, NodeId(node)) for node in NODES]
        self.submitted: list[JobId] = []

    # clients

    @rule(wanted=st.sampled_from(SPECS), key=st.sampled_from(["", "", "k"]))
    def submit(self, wanted: object, key: str) -> None:
        self.submitted.append(self.world.submit(wanted, idempotency_key=key, queue_anyway=True))  # type: ignore[arg-type]

    @precondition(lambda self: self.submitted)
    @rule(number=numbers)
    def stop(self, number: int) -> None:
        self.world.stop(JobId(pick(list(self.submitted), number)))

    @precondition(lambda self: self.submitted)
    @rule(number=numbers, force=st.booleans())
    def delete(self, number: int, force: bool) -> None:
        self.world.delete(JobId(pick(list(self.submitted), number)), force=force)

    # agents

    @rule(node=numbers, number=numbers, code=st.sampled_from([0, 0, 0, 1, 137]))
    def work(self, node: int, number: int, code: int) -> None:
        agent = self._agent(node)
        if to_do := agent.to_do():
            agent.work(ExecutionId(pick(list(to_do), number)), code=code)

    @rule()
    def everybody_does_one_thing(self) -> None:
        for agent in self.agents:
            for name in agent.to_do():
                agent.work(name)
            if agent.connected and agent.outgoing:
                agent.deliver_all()

    @rule(node=numbers, number=numbers)
    def fail(self, node: int, number: int) -> None:
        agent = self._agent(node)
        if agent.locals:
            agent.fail(ExecutionId(pick(list(agent.locals), number)))

    @rule(node=numbers, number=numbers)
    def deliver(self, node: int, number: int) -> None:
        agent = self._agent(node)
        if agent.connected and agent.outgoing:
            agent.deliver(number)

    @rule(node=numbers, number=numbers)
    def repeat(self, node: int, number: int) -> None:
        agent = self._agent(node)
        if agent.connected and agent.sent:
            agent.repeat(number)

    @rule(node=numbers)
    def heartbeat(self, node: int) -> None:
        if self._agent(node).connected:
            self.world.heartbeat(self._agent(node).node)

    # networks, machines, time

    @rule(node=numbers)
    def lose_the_connection(self, node: int) -> None:
        if self._agent(node).connected:
            self.world.disconnect(self._agent(node).node)

    @rule(node=numbers)
    def connect(self, node: int) -> None:
        self._agent(node).connect()

    @rule(node=numbers)
    def restart_an_agent(self, node: int) -> None:
        self._agent(node).restart()

    @rule()
    def restart_the_coordinator(self) -> None:
        self.world.restart()

    @rule(node=numbers, broken=st.booleans())
    def a_gpu_breaks_or_recovers(self, node: int, broken: bool) -> None:
        name = self._agent(node).node
        first = gpu(name, 0, problems=("lost",) if broken else ())
        self.world.change_inventory(name, gpus=(first, *gpus(name, NODES[name])[1:]))

    @rule(seconds=st.sampled_from([1, 10, 31, 61, 100]), alive=st.booleans())
    def time_passes(self, seconds: int, alive: bool) -> None:
        for _ in range(seconds // 10):
            self.world.advance(10)
            for agent in self.agents:
                if alive and agent.connected:
                    self.world.heartbeat(agent.node)
        self.world.advance(seconds % 10)

    # what always holds, beside what every step of the world checks

    @invariant()
    def nothing_is_given_away_that_is_not_there(self) -> None:
        fits_into_its_nodes(self.world.cluster)

    @invariant()
    def what_is_stored_is_all_that_counts(self) -> None:
        assert facts(reload(self.world.store, self.world.now)) == facts(self.world.cluster)

    def teardown(self) -> None:
        """When all behave well in the end, every job ends, and its logs are complete."""
        for agent in self.agents:
            agent.connect()
            self.world.change_inventory(agent.node, gpus=gpus(agent.node, NODES[agent.node]))
        for _ in range(ROUNDS):
            if not self._left():
                break
            self.everybody_does_one_thing()
            self.time_passes(1, alive=True)
        assert self._left() == []
        assert all(self.world.cluster.usage(agent.node).executions == set() for agent in self.agents)

    def _left(self) -> list[str]:
        live = [job.id for job in self.world.cluster.jobs.values() if job.ended_at is None]
        return live + [name for agent in self.agents for name in (*agent.to_do(), *agent.plan.goals)]

    def _agent(self, number: int) -> Agent:
        return self.agents[number % len(self.agents)]


def facts(cluster: Cluster) -> dict[str, object]:
    """Everything that must survive a restart."""
    return {
        "jobs": cluster.jobs,
        "attempts": cluster.attempts,
        "executions": cluster.executions,
        "nodes": cluster.nodes,
        "queue": [job.id for job in cluster.queued()],
        "usage": {node: cluster.usage(node) for node in cluster.nodes},
        "planned": {node: {each.id for each in cluster.planned(node)} for node in cluster.nodes},
        "phases": {job: cluster.phase(job) for job in cluster.jobs},
    }


TestAnyCourseOfEvents = Course.TestCase
TestAnyCourseOfEvents.settings = settings(deadline=None, max_examples=25, stateful_step_count=50)
