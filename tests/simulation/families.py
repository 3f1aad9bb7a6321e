"""Families of scenarios: much of one kind of trouble, so that rare meetings are met."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from random import Random

from muster.domain.data.checkpoint import JobCheckpoint
from muster.domain.data.code import GitCode, JobCode
from muster.domain.jobs.disconnect import SHORTEST_LOST_AFTER, OnDisconnect
from muster.domain.jobs.job import JobSpec, Resources
from muster.domain.jobs.restart import RestartPolicy
from tests.simulation.agent_program import Frailty
from tests.simulation.choosy_families import divided, labelled
from tests.simulation.network import Harshness
from tests.simulation.scenario import GIB, PASSING_PROJECT, Scale, Scenario, anything
from tests.simulation.scheduling_families import calendar, crowded, peaceful, pooled, sharing, tainted
from tests.simulation.troubles import Troubles
from tests.simulation.weakness import Weakness


def draw(chance: Random, scale: Scale, family: str | None = None) -> Scenario:
    """A scenario of that scale: anything may go wrong, or much of one kind, so that rare meetings are met."""
    scenario = anything(chance, scale)
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
        peaceful(scenario),
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
        peaceful(scenario),
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
        peaceful(scenario),
        fault_every=80.0,
        faults=("cut a rack off", "cut a rack off", "cut peers", "slow a link"),
        spells=(25.0, 80.0, 150.0, 400.0),
    )


def _deaf(scenario: Scenario) -> Scenario:
    """Nodes that hear nothing of the coordinator give each other permits, though it still hears some of them."""
    calm = peaceful(scenario)
    return replace(
        calm,
        parts=(calm.parts * 3)[:5],
        specs=tuple((at, _pair(spec) if number % 4 else spec) for number, (at, spec) in enumerate(calm.specs)),
        fault_every=45.0,
        faults=("deafen one and cut another", "deafen one and cut another", "deafen a node", "kill an agent"),
        deaths=0.1,
        endless=0.1,
        code_seconds=150.0,
        spells=(80.0, 150.0, 250.0),
    )


def _saving(spec: JobSpec) -> JobSpec:
    """A gang that saves, and begins again where it has failed."""
    roles = tuple(replace(role, checkpoint=JobCheckpoint(), count=min(role.count, 3)) for role in spec.roles)
    again = RestartPolicy(limit=4, infrastructure=4, backoff=timedelta())
    return replace(spec, roles=roles, restarts=again, timeouts=replace(spec.timeouts, fetch=timedelta(seconds=5)))


def _coming_from_git(spec: JobSpec) -> JobSpec:
    """A job whose code is on a branch that moves."""
    code = JobCode(git=GitCode(url="https://git.example.org/train.git", ref="main"))
    return replace(spec, roles=tuple(replace(role, code=code) for role in spec.roles))


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
    """Agents die and stay dead while user code runs on: the killers must see to it."""
    return replace(
        peaceful(scenario),
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


def _maintenance(scenario: Scenario) -> Scenario:
    """Nodes are cordoned and drained, and take jobs again, while some are cut off or restarted."""
    return replace(
        peaceful(scenario),
        fault_every=40.0,
        faults=(
            "drain a node",
            "drain a node",
            "drain a node",
            "cut a node off",
            "kill the coordinator",
            "kill an agent",
        ),
        spells=(5.0, 20.0, 60.0, 300.0),
    )


def _late(scenario: Scenario) -> Scenario:
    """Acknowledgements come late, and then nodes fall silent: few seconds lie between dead and lost."""
    calm = peaceful(scenario)
    return replace(
        calm,
        specs=tuple((at, _short_fenced(spec)) for at, spec in calm.specs),
        fault_every=60.0 / len(scenario.parts),
        faults=("slow nodes and cut them off",),
        deaths=0.0,
        endless=0.8,
        skew=0.024,
        spells=(60.0, 80.0, 150.0),
    )


def _short_fenced(spec: JobSpec) -> JobSpec:
    """A job that stops where there is no contact, as soon as jobs can."""
    timeouts = replace(spec.timeouts, lost_after=SHORTEST_LOST_AFTER, grace=timedelta(seconds=0.5))
    return replace(spec, timeouts=timeouts, on_disconnect=OnDisconnect.STOP)


def _stale(scenario: Scenario) -> Scenario:
    """Plans come twice and late, and streams break, so that whole plans are overtaken by changes."""
    return replace(
        scenario,
        fault_every=10.0 / len(scenario.parts),
        faults=("break a stream", "break a stream", "slow a link"),
        weakness=Weakness(),
        frailty=Frailty(),
        harshness_up=Harshness(),
        harshness_down=Harshness(double=0.4, delay=0.4),
        code_seconds=10.0,
        spells=(0.3, 3.0),
    )


def _lonely(scenario: Scenario) -> Scenario:
    """Nodes are cut off from the coordinator and not from their peers, which hear it and say so."""
    calm = peaceful(scenario)
    return replace(
        calm,
        specs=tuple((at, _pair(spec)) for at, spec in calm.specs),
        fault_every=60.0,
        faults=("cut a node from the coordinator", "cut a node from the coordinator", "kill an agent"),
        deaths=0.0,
        client_nerves=0.0,
        spells=(80.0, 150.0, 250.0),
        dead_when_lost=True,
    )


def _fickle(scenario: Scenario) -> Scenario:
    """Clients stop nearly every job, while the coordinator dies around its commits."""
    return replace(
        scenario,
        fault_every=40.0,
        faults=("kill the coordinator",),
        weakness=Weakness(before_commit=0.01, after_commit=0.02, between_effects=0.02),
        client_nerves=0.8,
        endless=0.5,
        spells=(0.3, 3.0),
    )


def _ambushed(scenario: Scenario) -> Scenario:
    """Gangs are cut off as they start: one part fails to start, and its agent forgets it while the others run on."""
    calm = peaceful(scenario)
    return replace(
        calm,
        parts=tuple(replace(parts, cpus=64, memory=64 * GIB) for parts in (calm.parts * 3)[:6]),
        specs=tuple((at, _half_started(spec)) for at, spec in calm.specs),
        fault_every=1e9,
        frailty=Frailty(troubles=Troubles(start=0.25, late_start=0.5)),
        deaths=0.0,
        endless=1.0,
        client_nerves=0.0,
        ambush=0.8,
    )


def _half_started(spec: JobSpec) -> JobSpec:
    """Plain processes, two to a node, that start again at once."""
    pair = _pair(spec)
    role = replace(pair.roles[0], count=4, image=None, resources=Resources(cpu_millis=4000))
    return replace(pair, roles=(role,), max_per_node=2)


def _passing_projects(scenario: Scenario) -> Scenario:
    """A project comes and goes under most of the jobs, while the coordinator dies around its commits."""
    specs = (
        (at, replace(spec, project=PASSING_PROJECT) if number % 4 else spec)
        for number, (at, spec) in enumerate(scenario.specs)
    )
    return replace(_fickle(scenario), specs=tuple(specs), project_spell=20.0)


def _leaving(scenario: Scenario) -> Scenario:
    """User code comes from a branch, leaves something, or saves for the next attempt; who stores it goes meanwhile."""
    specs = tuple((at, _saving(spec) if number % 2 else spec) for number, (at, spec) in enumerate(scenario.specs))
    return replace(
        scenario,
        specs=tuple((at, _coming_from_git(spec) if number % 3 else spec) for number, (at, spec) in enumerate(specs)),
        fault_every=20.0 / len(scenario.parts),
        faults=("kill an agent", "kill the coordinator", "cut a node off", "lose a node", "reinstall a node"),
        deaths=0.5,
        code_seconds=5.0,
        leaves=0.8,
        spells=(1.0, 12.0, 120.0),
    )


FAMILIES: Mapping[str, tuple[float, Callable[[Scenario], Scenario]]] = {
    "anything": (0.31, _as_it_is),
    "silent": (0.15, _silent),
    "restless": (0.1, _restless),
    "docker": (0.05, _dockerless),
    "outage": (0.06, _outage),
    "outage and partition": (0.08, _outage_and_partition),
    "rack": (0.07, _rack),
    "headless": (0.07, _headless),
    "deaf": (0.08, _deaf),
    "maintenance": (0.05, _maintenance),
    "late": (0.05, _late),
    "stale": (0.05, _stale),
    "lonely": (0.05, _lonely),
    "fickle": (0.05, _fickle),
    "ambushed": (0.05, _ambushed),
    "projects": (0.05, _passing_projects),
    "calendar": (0.08, calendar),
    "pools": (0.05, pooled),
    "tainted": (0.05, tainted),
    "crowded": (0.08, crowded),
    "labelled": (0.05, labelled),
    "sharing": (0.05, sharing),
    "divided": (0.05, divided),
    "leaving": (0.05, _leaving),
}
"""Families by name: how often, and what it makes of what was drawn."""
