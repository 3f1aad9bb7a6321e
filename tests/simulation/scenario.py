"""What one seed is about: how large the fleet is, which jobs come, what goes wrong and how often."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random

from muster.domain.fence import SHORTEST_LOST_AFTER, OnDisconnect
from muster.domain.job import JobSpec, Packing, PortRequest, Resources, Role, Timeouts
from muster.domain.lifecycle import SuccessRule
from muster.domain.restart import ExitCodes, RestartPolicy
from tests.simulation.agent_program import Frailty
from tests.simulation.agent_runtime import Troubles
from tests.simulation.coordinator_program import Weakness
from tests.simulation.network import Harshness
from tests.simulation.truth import Behaviour, Parts

GIB = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How much of everything."""

    nodes: tuple[int, int]
    jobs: tuple[int, int]
    seconds: tuple[float, float]
    """Of trouble; afterwards it must come to rest."""


SMALL = Scale(nodes=(2, 6), jobs=(4, 16), seconds=(60.0, 400.0))
LARGE = Scale(nodes=(24, 48), jobs=(250, 400), seconds=(1200.0, 1800.0))

FAULTS = (
    "cut a node off",
    "cut a rack off",
    "cut peers",
    "cut one way",
    "deafen one and cut another",
    "cut several off",
    "slow a link",
    "break a stream",
    "kill the coordinator",
    "kill an agent",
    "kill an agent for long",
    "pause an agent",
    "reboot a node",
    "reinstall a node",
    "lose a node",
    "break a GPU",
    "lose Docker",
)

SPELLS = ((0.3, 3.0), (3.0, 12.0, 35.0), (80.0, 150.0), (0.3, 3.0, 12.0, 35.0, 80.0, 150.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Drawn from a seed."""

    parts: tuple[Parts, ...]
    """Of each node."""
    specs: tuple[tuple[float, JobSpec], ...]
    """When each job comes."""
    seconds: float
    fault_every: float
    """Seconds between two faults, on average."""
    faults: tuple[str, ...]
    weakness: Weakness
    frailty: Frailty
    harshness_up: Harshness
    harshness_down: Harshness
    client_nerves: float
    """How often a client stops or deletes a job, per job."""
    deaths: float
    """How often user code fails."""
    endless: float
    """How often user code runs until it is stopped."""
    code_seconds: float
    """How long other user code runs, on average."""
    spells: tuple[float, ...]
    """Seconds for which something is away: from a blink to beyond the time after which a node is lost."""
    no_fence: bool = False
    """Whether no node may ever end user code for want of contact: only the coordinator is away."""
    steady: float = 0.0
    """Seconds for which a coordinator that is back does not vanish silently: its agents would say that it is there."""
    skew: float = 0.0
    """How much faster or slower than true time clocks run at most."""

    def clock_rate(self, chance: Random) -> float:
        return 1.0 + self.skew * chance.uniform(-1.0, 1.0)


def draw(chance: Random, scale: Scale, family: str | None = None) -> Scenario:
    """A scenario of that scale: anything may go wrong, or much of one kind, so that rare meetings are met."""
    scenario = _anything(chance, scale)
    drawn = chance.choices(list(FAMILIES), [likelihood for likelihood, _ in FAMILIES.values()])[0]
    return FAMILIES[family or drawn][1](scenario)


def _as_it_is(scenario: Scenario) -> Scenario:
    """Whatever was drawn."""
    return scenario


def _silent(scenario: Scenario) -> Scenario:
    """Nodes fall silent for long while user code runs on them."""
    return replace(
        scenario,
        seconds=scenario.seconds + 200.0,
        fault_every=60.0 / len(scenario.parts),
        faults=("cut a node off", "cut one way", "cut several off", "kill the coordinator"),
        frailty=Frailty(),
        harshness_up=Harshness(),
        harshness_down=Harshness(),
        code_seconds=120.0,
        deaths=0.3,
        endless=0.3,
        spells=(25.0, 80.0, 150.0),
    )


def _restless(scenario: Scenario) -> Scenario:
    """Agents come and go faster than what they sent arrives."""
    return replace(
        scenario,
        fault_every=8.0 / len(scenario.parts),
        faults=("slow a link", "kill an agent", "break a stream"),
        weakness=Weakness(tardiness=5.0),
        frailty=Frailty(at_action=0.01),
        harshness_up=Harshness(),
        harshness_down=Harshness(),
        spells=(0.3, 3.0),
    )


def _dockerless(scenario: Scenario) -> Scenario:
    """Docker goes and comes."""
    return replace(
        scenario,
        parts=tuple(replace(parts, docker=True) for parts in scenario.parts),
        fault_every=60.0 / len(scenario.parts),
        faults=("lose Docker", "kill an agent", "lose Docker", "reboot a node", "cut a node off"),
        code_seconds=120.0,
        spells=(1.0, 12.0, 80.0, 400.0),
    )


def _outage(scenario: Scenario) -> Scenario:
    """Only the coordinator is away, again and again, for up to an hour; healthy gangs must not notice."""
    return replace(
        _peaceful(scenario),
        specs=tuple((at, replace(spec, on_disconnect=OnDisconnect.KEEP)) for at, spec in scenario.specs),
        fault_every=200.0,
        faults=("kill the coordinator",),
        deaths=0.0,
        client_nerves=0.0,
        spells=(20.0, 120.0, 600.0, 3000.0),
        no_fence=True,
        steady=30.0,
    )


def _outage_and_partition(scenario: Scenario) -> Scenario:
    """The coordinator is away for long, and meanwhile nodes cannot reach each other either."""
    return replace(
        _peaceful(scenario),
        fault_every=60.0,
        faults=(
            "kill the coordinator",
            "cut a node off",
            "cut a rack off",
            "cut peers",
            "cut one way",
            "reboot a node",
            "lose a node",
        ),
        spells=(20.0, 60.0, 120.0, 600.0),
    )


def _rack(scenario: Scenario) -> Scenario:
    """Several nodes are cut off together and still reach each other."""
    return replace(
        _peaceful(scenario),
        fault_every=80.0,
        faults=("cut a rack off", "cut a rack off", "cut peers", "slow a link"),
        spells=(25.0, 80.0, 150.0, 400.0),
    )


def _deaf(scenario: Scenario) -> Scenario:
    """Nodes that hear nothing of the coordinator give each other permits, though it still hears some of them."""
    peaceful = _peaceful(scenario)
    return replace(
        peaceful,
        parts=(peaceful.parts * 3)[:5],
        specs=tuple((at, _pair(spec) if number % 4 else spec) for number, (at, spec) in enumerate(peaceful.specs)),
        fault_every=45.0,
        faults=("deafen one and cut another", "deafen one and cut another", "deafen a node", "kill an agent"),
        deaths=0.1,
        endless=0.1,
        code_seconds=150.0,
        spells=(80.0, 150.0, 250.0),
    )


def _pair(spec: JobSpec) -> JobSpec:
    """Two nodes that have only each other as witnesses, and start again soon."""
    role = replace(spec.roles[0], count=2, resources=Resources(gpus=0))
    timeouts = replace(spec.timeouts, run=None, lost_after=SHORTEST_LOST_AFTER)
    restarts = RestartPolicy(limit=5, infrastructure=5, backoff=timedelta())
    return replace(
        spec,
        roles=(role,),
        max_per_node=1,
        node_labels={},
        timeouts=timeouts,
        restarts=restarts,
        on_disconnect=OnDisconnect.KEEP,
    )


def _headless(scenario: Scenario) -> Scenario:
    """Agents die and stay dead while user code runs on: the keepers must see to it."""
    return replace(
        _peaceful(scenario),
        fault_every=60.0,
        faults=(
            "kill an agent for long",
            "kill an agent for long",
            "kill an agent",
            "pause an agent",
            "cut a node off",
        ),
        spells=(20.0, 60.0, 120.0, 300.0),
    )


def _peaceful(scenario: Scenario) -> Scenario:
    """Gangs on several nodes whose code runs for long, some ranks shorter than others, and nothing else goes wrong."""
    return replace(
        scenario,
        seconds=scenario.seconds * 2 + 300.0,
        specs=tuple((at * 2, _spread(spec, number)) for number, (at, spec) in enumerate(scenario.specs)),
        weakness=Weakness(),
        frailty=Frailty(),
        harshness_up=Harshness(),
        harshness_down=Harshness(),
        endless=0.2,
        code_seconds=200.0,
    )


def _spread(spec: JobSpec, number: int) -> JobSpec:
    """Two of three jobs lie on several nodes, for as long as they like."""
    if number % 3 == 0:
        return spec
    roles = tuple(replace(role, count=1 + number % 3, resources=Resources(gpus=number % 2)) for role in spec.roles)
    timeouts = replace(spec.timeouts, run=None)
    restarts = RestartPolicy(limit=2, infrastructure=4, backoff=timedelta())
    return replace(spec, roles=roles, max_per_node=1, node_labels={}, timeouts=timeouts, restarts=restarts)


FAMILIES: Mapping[str, tuple[float, Callable[[Scenario], Scenario]]] = {
    "anything": (0.36, _as_it_is),
    "silent": (0.15, _silent),
    "restless": (0.1, _restless),
    "docker": (0.05, _dockerless),
    "outage": (0.06, _outage),
    "outage and partition": (0.08, _outage_and_partition),
    "rack": (0.07, _rack),
    "headless": (0.07, _headless),
    "deaf": (0.08, _deaf),
}
"""By name: how often, and what it makes of what was drawn."""


def _anything(chance: Random, scale: Scale) -> Scenario:
    seconds = chance.uniform(*scale.seconds)
    parts = tuple(_parts(chance) for _ in range(chance.randint(*scale.nodes)))
    count, thin = chance.randint(*scale.jobs), chance.random() < 0.3
    specs = (_thin(chance, number) if thin else _spec(chance, number) for number in range(count))
    return Scenario(
        parts=parts,
        specs=tuple((chance.uniform(0.0, seconds * 0.9), spec) for spec in specs),
        seconds=seconds,
        fault_every=chance.choice((4.0, 10.0, 20.0, 40.0, 1e9)) * 5 / len(parts),
        faults=tuple(fault for fault in FAULTS if chance.random() < 0.5) or (FAULTS[0],),
        weakness=_weakness(chance),
        frailty=Frailty(at_action=_rarely(chance, 0.02), troubles=_troubles(chance)),
        harshness_up=_harshness(chance) if chance.random() < 0.15 else Harshness(),
        harshness_down=_harshness(chance) if chance.random() < 0.15 else Harshness(),
        client_nerves=_rarely(chance, 0.6),
        deaths=_rarely(chance, 0.3),
        endless=_rarely(chance, 0.3),
        code_seconds=chance.choice((3.0, 30.0, 120.0)),
        spells=chance.choice(SPELLS),
        skew=chance.choice((0.0, 0.01, 0.024)),
    )


def behaviour(chance: Random, scenario: Scenario) -> Behaviour:
    """What one execution's user code does."""
    ill = chance.random() < scenario.deaths
    return Behaviour(
        seconds=None if chance.random() < scenario.endless else chance.expovariate(1 / scenario.code_seconds),
        code=chance.choice((1, 2, 127, 134, 137, 139)) if ill else 0,
        on_term=chance.choice((0.01, 0.2, 3.0, 1e6)),
        term_code=chance.choice((0, 143, 143, 1)),
        log=chance.choice((0, 80, 3000, 15_000)),
    )


def _parts(chance: Random) -> Parts:
    return Parts(
        gpus=chance.choice((0, 1, 1, 2, 2, 4, 8)),
        cpus=chance.choice((4, 8, 16)),
        memory=chance.choice((16, 64)) * GIB,
        docker=chance.random() < 0.7,
        live_restore=chance.random() < 0.7,
        labels={"zone": chance.choice(("a", "b"))},
    )


def _spec(chance: Random, number: int) -> JobSpec:
    roles: tuple[Role, ...] = (_role(chance, "worker"),)
    if chance.random() < 0.25:
        roles = (_role(chance, "master", most=1), *roles)
    return JobSpec(
        name=chance.choice(("train", f"job-{number}")),
        roles=roles,
        success=chance.choice((SuccessRule.ALL, SuccessRule.ALL, SuccessRule.RANK0)),
        priority=chance.choice((0, 0, 0, 5, -5)),
        packing=chance.choice(tuple(Packing)),
        max_per_node=chance.choice((None, None, None, 1, 2)),
        node_labels={"zone": "a"} if chance.random() < 0.15 else {},
        timeouts=Timeouts(
            check_in=timedelta(seconds=chance.choice((15.0, 60.0, 120.0))),
            grace=timedelta(seconds=chance.choice((0.5, 5.0, 10.0))),
            run=timedelta(seconds=chance.choice((5.0, 30.0, 60.0))) if chance.random() < 0.3 else None,
            lost_after=timedelta(seconds=chance.choice((60.0, 60.0, 90.0, 90.0, 120.0, 1800.0))),
        ),
        on_disconnect=chance.choice((OnDisconnect.KEEP, OnDisconnect.KEEP, OnDisconnect.STOP)),
        restarts=_restarts(chance) if chance.random() < 0.5 else RestartPolicy(),
    )


def _thin(chance: Random, number: int) -> JobSpec:
    """A gang that lies on several nodes and starts again: what one of them does then matters to the others."""
    spec = _spec(chance, number)
    roles = tuple(replace(role, count=chance.randint(1, 3), resources=Resources(gpus=0)) for role in spec.roles)
    again = RestartPolicy(limit=3, infrastructure=3, backoff=timedelta())
    return replace(spec, roles=roles, max_per_node=1, node_labels={}, restarts=again)


def _restarts(chance: Random) -> RestartPolicy:
    return RestartPolicy(
        limit=chance.randint(0, 3),
        infrastructure=chance.randint(0, 3),
        backoff=timedelta(seconds=chance.choice((0.0, 1.0, 5.0))),
        fail_on=ExitCodes(((2, 2),)) if chance.random() < 0.2 else ExitCodes(),
    )


def _role(chance: Random, name: str, most: int = 6) -> Role:
    return Role(
        name=name,
        count=chance.randint(1, chance.randint(1, most)),
        image="trainer" if chance.random() < 0.6 else None,
        command=("train",),
        resources=Resources(
            gpus=chance.choice((0, 0, 1, 1, 1, 2, 4)),
            gpu_model="h100" if chance.random() < 0.1 else None,
            cpu_millis=chance.choice((0, 1000, 3000)),
            memory=chance.choice((None, None, 2 * GIB, 12 * GIB)),
        ),
        ports=(PortRequest(name="metrics"),) if chance.random() < 0.3 else (),
    )


def _weakness(chance: Random) -> Weakness:
    return Weakness(
        before_commit=_rarely(chance, 0.01),
        at_commit=_rarely(chance, 0.01),
        after_commit=_rarely(chance, 0.01),
        between_effects=_rarely(chance, 0.01),
        slow_commit=_rarely(chance, 0.05),
        tardiness=chance.choice((0.001, 0.3, 5.0)),
    )


def _troubles(chance: Random) -> Troubles:
    return Troubles(
        prepare=_rarely(chance, 0.1),
        arm=_rarely(chance, 0.1),
        start=_rarely(chance, 0.1),
        hang=_rarely(chance, 0.1),
        slow=_rarely(chance, 0.3),
        stop=_rarely(chance, 0.2),
        exit=_rarely(chance, 0.05),
    )


def _harshness(chance: Random) -> Harshness:
    return Harshness(lose=_rarely(chance, 0.1), double=_rarely(chance, 0.1), delay=_rarely(chance, 0.2))


def _rarely(chance: Random, most: float) -> float:
    """Often nothing, so that other troubles have their full say; otherwise anything up to the most."""
    return most * chance.random() if chance.random() < 0.5 else 0.0
