"""What goes wrong from outside: links, programs, nodes and GPUs, each for a while."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial

from muster.domain.ids import JobId, NodeId
from tests.simulation.agent_program import AgentProgram
from tests.simulation.clients import Clients
from tests.simulation.coordinator_program import CoordinatorProgram
from tests.simulation.network import Harshness, Path
from tests.simulation.peers import Peers
from tests.simulation.scenario import Scenario
from tests.simulation.truth import Sandbox, SimulatedNode
from tests.simulation.weakness import Weakness
from tests.simulation.world import World

CLOCK_SET = 0.2
"""How often the coordinator finds another wall clock when it starts."""
LATE_ANSWERS = 14.0
"""Most seconds by which acknowledgements come late, well within the silence after which a stream is given up."""


class Faults:
    """Injects faults until it is told to stop; then it mends everything."""

    def __init__(
        self,
        world: World,
        coordinator: CoordinatorProgram,
        agents: Mapping[NodeId, AgentProgram],
        peers: Peers,
        clients: Clients,
        scenario: Scenario,
    ) -> None:
        self._world = world
        self._coordinator = coordinator
        self._agents = agents
        self._peers = peers
        self._clients = clients
        self._scenario = scenario
        self._chance = world.chance("faults")
        self._clocks = world.chance("clocks")
        self._over = False
        self._ambushed: set[JobId] = set()
        self._kinds: Mapping[str, Callable[[], None]] = {
            "cut a node off": lambda: self._cut([self._any()]),
            "cut a rack off": self._cut_rack,
            "cut peers": self._cut_peers,
            "pause an agent": self._pause,
            "kill an agent for long": self._kill_agent_for_long,
            "cut one way": self._cut_one_way,
            "deafen a node": lambda: self._cut_from_coordinator(self._any(), up=False),
            "cut a node from the coordinator": lambda: self._cut_from_coordinator(self._any(), up=True),
            "deafen one and cut another": self._deafen_and_cut,
            "cut several off": self._cut_several,
            "slow a link": self._slow,
            "slow nodes and cut them off": self._slow_and_cut,
            "break a stream": self._break_stream,
            "kill the coordinator": self._kill_coordinator,
            "kill an agent": self._kill_agent,
            "reboot a node": self._reboot,
            "reinstall a node": self._reinstall,
            "lose a node": self._lose_node,
            "break a GPU": self._break_gpu,
            "lose Docker": self._lose_docker,
            "drain a node": self._drain,
        }

    def begin(self) -> None:
        """Set the weaknesses in, and plan the first fault."""
        self._coordinator.weakness = self._scenario.weakness
        self._coordinator.crashed = self._restart_coordinator
        for agent in self._agents.values():
            agent.crashed = lambda agent=agent: self._restart(agent)  # type: ignore[misc]  # mypy infers no lambda with a default
            agent.node.up.harshness = self._scenario.harshness_up
            agent.node.down.harshness = self._scenario.harshness_down
        self._clients.watcher.on_start = self._user_code_starts
        self._plan()

    def mend(self) -> None:
        """No more faults, and everything works again."""
        self._over = True
        harsh = self._scenario.harshness_up != Harshness()
        self._coordinator.weakness = Weakness()
        self._restart_coordinator_now()
        for agent in self._agents.values():
            node = agent.node
            agent.frailty.at_action = 0.0
            node.broken.clear()
            node.restore_engine()
            for path in (node.up, node.down):
                path.harshness, path.slowness = Harshness(), 0.0
                path.heal()
            for path in self._peers.paths({node.name}):
                path.harshness, path.slowness = Harshness(), 0.0
                path.heal()
            agent.start()
            if harsh and agent.link is not None:
                agent.link.reset()  # reports that were lost inside a stream come again only with a new one
        self._world.tell("all faults are over", *self._agents, "coordinator")

    def _plan(self) -> None:
        self._world.after(self._chance.expovariate(1 / self._scenario.fault_every), self._strike)

    def _strike(self) -> None:
        if not self._over:
            self._kinds[self._chance.choice(self._scenario.faults)]()
            self._plan()

    def _any(self) -> AgentProgram:
        return self._chance.choice(list(self._agents.values()))

    def _spell(self) -> float:
        return self._chance.choice(self._scenario.spells) * self._chance.uniform(0.5, 1.5)

    # links

    def _cut(self, agents: Sequence[AgentProgram]) -> None:
        """Off from the coordinator, perhaps from the others too."""
        spell = self._spell()
        paths = [path for agent in agents for path in (agent.node.up, agent.node.down)]
        if self._chance.random() < 0.7:
            paths += [path for agent in agents for path in self._peers.paths({agent.node.name})]
        self._cut_paths(paths, spell, f"cut off for {spell:.1f} s", agents)

    def _cut_rack(self) -> None:
        """Several that still reach each other."""
        agents, spell = list(self._agents.values()), self._spell()
        rack = self._chance.sample(agents, self._chance.randint(1, len(agents)))
        paths = [path for agent in rack for path in (agent.node.up, agent.node.down)]
        paths += self._peers.paths({agent.node.name for agent in rack})
        self._cut_paths(paths, spell, f"in a rack that is cut off for {spell:.1f} s", rack)

    def _cut_peers(self) -> None:
        """Two nodes from each other, or one way."""
        agents = list(self._agents.values())
        if len(agents) > 1:
            one, other = self._chance.sample(agents, 2)
            names, spell = (one.node.name, other.node.name), self._spell()
            paths = [self._peers.path(*names), self._peers.path(*reversed(names))]
            paths = paths if self._chance.random() < 0.5 else paths[:1]
            self._cut_paths(paths, spell, f"cannot ask each other for {spell:.1f} s", (one, other))

    def _cut_paths(self, paths: Sequence[Path], spell: float, words: str, agents: Sequence[AgentProgram]) -> None:
        self._world.tell(words, *(agent.node.name for agent in agents))
        for path in paths:
            path.cut()
            self._world.after(spell, path.heal)

    def _pause(self) -> None:
        self._any().freeze(self._spell())

    def _kill_agent_for_long(self) -> None:
        agent = self._any()
        agent.crash()
        self._world.after(self._spell() * 3, agent.start)

    def _cut_one_way(self) -> None:
        node, spell = self._any().node, self._spell()
        path = self._chance.choice((node.up, node.down))
        self._world.tell(f"{'up' if path is node.up else 'down'} is cut for {spell:.1f} s", node.name)
        path.cut()
        self._world.after(spell, path.heal)

    def _deafen_and_cut(self) -> None:
        """The first may give permits to the second while the coordinator hears of its end."""
        agents = list(self._agents.values())
        one, other = self._chance.sample(agents, 2) if len(agents) > 1 else (agents[0], agents[0])
        self._cut_from_coordinator(one, up=False)
        self._cut_from_coordinator(other, up=True)

    def _user_code_starts(self, node: SimulatedNode, sandbox: Sandbox) -> None:
        """Perhaps cut its gang off at this moment, once per job."""
        job = sandbox.assignment.job
        if self._over or job in self._ambushed or self._chance.random() >= self._scenario.ambush:
            return
        assert sandbox.roster is not None
        others = sorted({member.node for member in sandbox.roster.members} - {node.name})
        if others:
            self._ambushed.add(job)
            other = self._agents[self._chance.choice(others)]
            self._world.after(0.2 * self._chance.random(), lambda: self._ambush(self._agents[node.name], other))

    def _ambush(self, deaf: AgentProgram, cut: AgentProgram) -> None:
        """Keep one node from hearing, restart its agent, and cut another off for longer; they still hear each other."""
        spell = self._chance.uniform(55.0, 100.0)
        self._cut_paths([deaf.node.down], spell, f"hears nothing of the coordinator for {spell:.1f} s", (deaf,))
        spell = self._chance.uniform(120.0, 250.0)
        self._cut_paths([cut.node.up, cut.node.down], spell, f"cut from the coordinator for {spell:.1f} s", (cut,))
        self._world.after(self._chance.uniform(3.0, 8.0), deaf.crash)
        self._world.after(10.0, deaf.start)

    def _cut_from_coordinator(self, agent: AgentProgram, *, up: bool) -> None:
        """Cut an agent from the coordinator, which may still hear it; peers it reaches."""
        paths = [agent.node.down, agent.node.up][: 2 if up else 1]
        spell = self._spell()
        self._cut_paths(paths, spell, f"hears nothing of the coordinator for {spell:.1f} s", (agent,))

    def _cut_several(self) -> None:
        agents = list(self._agents.values())
        self._cut(self._chance.sample(agents, self._chance.randint(1, len(agents))))

    def _slow(self) -> None:
        node = self._any().node
        path = self._chance.choice((node.up, node.down))
        path.slowness = self._chance.choice((0.1, 2.0, 20.0))
        self._world.tell(f"is slow by {path.slowness} s", node.name)
        self._world.after(self._spell(), lambda: _swift(path))

    def _slow_and_cut(self) -> None:
        """Acknowledgements come late, and then nothing comes any more."""
        agents = self._chance.sample(list(self._agents.values()), self._chance.randint(1, len(self._agents)))
        for agent in agents:
            agent.node.down.slowness = LATE_ANSWERS
            self._world.tell(f"hears by up to {LATE_ANSWERS:g} s late", agent.node.name)
            self._world.after(self._chance.uniform(15.0, 60.0), partial(self._cut_slow, agent))

    def _cut_slow(self, agent: AgentProgram) -> None:
        agent.node.down.slowness = 0.0
        self._cut([agent])

    def _break_stream(self) -> None:
        agent = self._any()
        if agent.link is not None:
            self._world.tell("its stream breaks", agent.node.name)
            agent.link.reset()

    # programs

    def _kill_coordinator(self) -> None:
        silently = self._chance.random() < 0.3
        if silently and self._world.seconds - self._coordinator.started_at < self._scenario.steady:
            return
        self._coordinator.crash(silently=silently)
        self._restart_coordinator()

    def _restart_coordinator(self) -> None:
        self._world.after(self._spell() / 2, self._restart_coordinator_now)

    def _restart_coordinator_now(self) -> None:
        if not self._coordinator.up:
            if self._clocks.random() < CLOCK_SET:
                days = self._clocks.randint(1, 30)
                self._world.tell(f"has its clock set {days} days ahead", "coordinator")
                self._coordinator.clock.turn(timedelta(days=days))
            self._coordinator.start()

    def _kill_agent(self) -> None:
        agent = self._any()
        agent.crash()
        self._restart(agent)

    def _restart(self, agent: AgentProgram) -> None:
        self._world.after(self._spell(), agent.start)

    # nodes

    def _reboot(self) -> None:
        agent = self._any()
        self._world.tell("reboots", agent.node.name)
        agent.crash(silently=True)
        agent.node.lose_power()
        self._restart(agent)

    def _reinstall(self) -> None:
        agent = self._any()
        node = agent.node
        self._world.tell("is installed anew", node.name)
        agent.crash(silently=True)
        node.lose_power()
        for execution in list(node.sandboxes):
            node.sweep(execution)
        node.identity = f"{node.name} since {self._world.seconds:.0f} s"
        self._restart(agent)

    def _lose_docker(self) -> None:
        node = self._any().node
        if node.has_docker and not node.engine_away:
            node.lose_engine()
            self._world.after(self._spell(), node.restore_engine)

    def _lose_node(self) -> None:
        """Lose a node for ever; after some time an operator says so. One node at least stays."""
        agent = self._any()
        node = agent.node
        if agent.gone or sum(not each.gone for each in self._agents.values()) == 1:
            return
        self._world.tell("loses its power for good", node.name)
        agent.gone = True
        agent.crash(silently=True)
        node.lose_power()
        for execution in list(node.sandboxes):
            node.sweep(execution)
        self._world.after(self._chance.uniform(30.0, 400.0), lambda: self._clients.remove_node(node.name))

    def _drain(self) -> None:
        """An operator's doing; that of a node which is away, too."""
        node, restart_jobs = self._any().node.name, self._chance.random() < 0.7
        self._world.tell(f"is {'drained' if restart_jobs else 'cordoned'}", node)
        self._clients.cordon_node(node, self._spell(), restart_jobs=restart_jobs)

    def _break_gpu(self) -> None:
        node = self._any().node
        if not node.gpu_count:
            return
        gpu = node.gpu(self._chance.randrange(node.gpu_count))
        self._world.tell(f"{gpu} breaks", node.name)
        node.broken[gpu] = "fell off the bus"
        if node.on_fault is not None and self._chance.random() < 0.5:
            node.on_fault()

        def mend() -> None:
            node.broken.pop(gpu, None)

        self._world.after(self._spell(), mend)


def _swift(path: Path) -> None:
    path.slowness = 0.0
