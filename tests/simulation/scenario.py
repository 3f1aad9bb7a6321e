"""What one seed is about: how large the fleet is, which jobs come, what goes wrong and how often."""

from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random

from muster.domain.jobs.disconnect import OnDisconnect
from muster.domain.jobs.job import DEFAULT_PROJECT, JobSpec, Packing, PortRequest, Resources, Role, Timeouts
from muster.domain.jobs.lifecycle import SuccessRule
from muster.domain.jobs.restart import ExitCodes, ExitRules, RestartPolicy
from tests.simulation.agent_program import Frailty
from tests.simulation.network import Harshness
from tests.simulation.troubles import Troubles
from tests.simulation.truth import Behaviour, Parts
from tests.simulation.weakness import Weakness

GIB = 1 << 30
PASSING_PROJECT = "vision"
"""The second project, which comes and goes."""
TEAMS = {"ada": "east", "bob": "east", "cyd": "east", "dan": "west", "eve": "west", "fay": ""}
"""Projects of scenarios with quotas, each with its department."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How much of everything."""

    nodes: tuple[int, int]
    jobs: tuple[int, int]
    seconds: tuple[float, float]
    """Seconds of trouble; afterwards it must come to rest."""


IDLE = timedelta(seconds=40)
"""How long some jobs may go unused."""
NODE_TYPES = ("t4", "v100")
"""Types of nodes to which projects may be confined."""
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
    """The parts of each node."""
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
    dead_when_lost: bool = False
    """Whether nodes are cut off from the coordinator alone, so that what counts as lost must be dead by then."""
    ambush: float = 0.0
    """How often the nodes of a gang are cut off just as its user code starts, per start."""
    project_spell: float = 0.0
    """Seconds for which a second project is there, or is away, on average; 0: there is only the default one."""
    holds: float = 0.0
    """How often a client holds, suspends or changes a job, per job."""
    taints: bool = False
    """Whether an operator gives nodes taints."""
    quotas: bool = False
    """Whether there are departments, and an admin changes what they and their projects may have."""
    leaves: float = 0.0
    """How often user code leaves something that is stored after its end."""
    skew: float = 0.0
    """How much faster or slower than true time clocks run at most."""

    def clock_rate(self, chance: Random) -> float:
        return 1.0 + self.skew * chance.uniform(-1.0, 1.0)


def anything(chance: Random, scale: Scale) -> Scenario:
    """Whatever may go wrong, in whatever mixture."""
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
        leaves=chance.choice((0.0, 0.0, 0.5)),
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
        storing=chance.choice((0.1, 5.0, 60.0)) if chance.random() < scenario.leaves else None,
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
        project=DEFAULT_PROJECT,
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
            idle=IDLE if number % 4 == 3 else None,
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
    )


def _role(chance: Random, name: str, most: int = 6) -> Role:
    return Role(
        name=name,
        count=chance.randint(1, chance.randint(1, most)),
        image="trainer" if chance.random() < 0.6 else None,
        command=("train",),
        exit_codes=ExitRules(fail=ExitCodes(((2, 2),)) if chance.random() < 0.1 else ExitCodes()),
        resources=Resources(
            gpus=chance.choice((0, 0, 1, 1, 1, 2, 4)),
            gpu_model="h100" if chance.random() < 0.1 else None,
            cpu_millis=chance.choice((0, 1000, 3000)),
            memory=chance.choice((None, None, 2 * GIB, 12 * GIB)),
        ),
        ports=_ports(chance.random()),
    )


def _ports(chance: float) -> tuple[PortRequest, ...]:
    """None, one that the agent chooses, or fixed ones, which are among few so that jobs stand in each other's way."""
    if chance < 0.15:
        return (PortRequest(name="metrics"),)
    if chance < 0.3:
        return (PortRequest(name="metrics", port=9100 + int(chance * 1000) % 3),)
    return (PortRequest(name="master", port=29_500),) if chance < 0.4 else ()


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
