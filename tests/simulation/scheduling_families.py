"""Families of scenarios that concern who is placed where and when, and who makes room for whom."""

from dataclasses import replace
from datetime import timedelta

from muster.domain.fleet.pool import NODE_TYPE_LABEL
from muster.domain.ids import NodeId
from muster.domain.jobs.job import DEFAULT_PROJECT, JobSpec, Resources
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.placing.pool_choice import PoolChoice
from muster.domain.jobs.placing.toleration import TaintEffect, Toleration, TolerationOperator
from muster.domain.jobs.restart import RestartPolicy
from muster.domain.jobs.stopping.preemption import OnPreempt, PreemptSignal
from tests.simulation.agent_program import Frailty
from tests.simulation.network import Harshness
from tests.simulation.scenario import GIB, NODE_TYPES, TEAMS, Scenario
from tests.simulation.weakness import Weakness
from tests.simulation.world import EPOCH


def calendar(scenario: Scenario) -> Scenario:
    """Jobs are held, suspended, changed and come too early, while the coordinator dies and its clock is set."""
    return replace(
        scenario,
        specs=tuple((at, _dated(spec, at, number)) for number, (at, spec) in enumerate(scenario.specs)),
        fault_every=50.0,
        faults=("kill the coordinator", "kill the coordinator", "cut a node off", "kill an agent", "reboot a node"),
        client_nerves=min(scenario.client_nerves, 0.2),
        holds=0.7,
        spells=(0.3, 3.0, 20.0, 80.0),
    )


def tainted(scenario: Scenario) -> Scenario:
    """Nodes get taints and lose them again, while some are cut off, and agents and the coordinator die."""
    return replace(
        peaceful(scenario),
        specs=tuple((at, _tolerating(spec, number)) for number, (at, spec) in enumerate(scenario.specs)),
        fault_every=50.0,
        faults=("kill the coordinator", "cut a node off", "kill an agent", "reinstall a node"),
        taints=True,
        spells=(0.3, 3.0, 20.0, 80.0),
    )


def _tolerating(spec: JobSpec, number: int) -> JobSpec:
    """Some tolerate a taint for ever, some for a while where they run already, some with one value alone."""
    worn = Toleration(key="worn", operator=TolerationOperator.EXISTS, effect=TaintEffect.NO_EXECUTE, seconds=20)
    lasting = Toleration(key="worn", operator=TolerationOperator.EXISTS)
    tolerations = ((), (worn,), (lasting,), (Toleration(key="team", value="red"),), (worn, lasting))
    return replace(spec, tolerations=tolerations[number % len(tolerations)])


def _dated(spec: JobSpec, at: float, number: int) -> JobSpec:
    """Some are held from the submit on, some come too early, some may be queued for a while only or are forgotten."""
    begins = EPOCH + timedelta(seconds=at + 40.0)
    timeouts = replace(spec.timeouts, queue=timedelta(seconds=90) if number % 3 == 1 else None)
    return replace(
        spec,
        hold=number % 5 == 2,
        not_before=begins if number % 4 == 1 else None,
        delete_after=timedelta(seconds=200) if number % 6 == 3 else None,
        timeouts=timeouts,
    )


def pooled(scenario: Scenario) -> Scenario:
    """Nodes are in two pools; jobs name them in an order, exclude nodes, or have their nodes for themselves."""
    parts = tuple(
        replace(parts, labels={**parts.labels, "pool": "even" if number % 2 else "odd"})
        for number, parts in enumerate(scenario.parts, start=1)
    )
    return replace(
        scenario,
        parts=parts,
        specs=tuple((at, _choosy(spec, number)) for number, (at, spec) in enumerate(scenario.specs)),
    )


def _choosy(spec: JobSpec, number: int) -> JobSpec:
    odd, even = PoolChoice(pool="odd"), PoolChoice(pool="even")
    later = replace(even, after=timedelta(seconds=20 + number % 3 * 40))
    return replace(
        spec,
        pools=((), (odd,), (even, odd), (odd, later))[number % 4],
        exclude_nodes=(NodeId(f"node-{number % 3 + 1}"),) if number % 5 == 0 else (),
        exclusive=number % 3 == 0,
    )


def crowded(scenario: Scenario) -> Scenario:
    """Jobs of all classes, projects and priorities make room for each other, while terms change and nodes are lost."""
    classes = (JobClass.PREEMPTIBLE, JobClass.SPARE, JobClass.PREEMPTIBLE, None, JobClass.GUARANTEED)
    teams = (*TEAMS, DEFAULT_PROJECT)
    times = 3
    specs = (
        (at, _crowding(spec, classes[number % len(classes)], teams[number * 3 % len(teams)], number))
        for number, (at, spec) in enumerate(scenario.specs * times)
    )
    return replace(
        scenario,
        seconds=scenario.seconds + 200.0,
        parts=tuple(
            replace(
                parts,
                gpus=max(2, parts.gpus),
                labels={**parts.labels, NODE_TYPE_LABEL: NODE_TYPES[number % len(NODE_TYPES)]},
            )
            for number, parts in enumerate(scenario.parts[:3])
        ),
        specs=tuple(specs),
        fault_every=50.0,
        faults=("kill the coordinator", "kill the coordinator", "kill an agent", "cut a node off", "drain a node"),
        weakness=Weakness(before_commit=0.005, after_commit=0.01, between_effects=0.01),
        harshness_up=Harshness(),
        harshness_down=Harshness(),
        frailty=Frailty(),
        client_nerves=min(scenario.client_nerves, 0.2),
        code_seconds=60.0,
        deaths=0.1,
        spells=(3.0, 20.0, 80.0, 150.0),
        quotas=True,
    )


def _crowding(spec: JobSpec, job_class: JobClass | None, project: str, number: int) -> JobSpec:
    """A job that has room somewhere, if others make it."""
    roles = tuple(
        replace(role, count=1 + number % 3, resources=replace(role.resources, gpus=1 + number % 2, gpu_model=None))
        for role in spec.roles[:1]
    )
    return replace(
        spec,
        roles=roles,
        project=project,
        job_class=job_class,
        priority=number * 7 % 5,
        node_labels={},
        exclusive=number % 11 == 5,
        on_preempt=OnPreempt(
            signal=PreemptSignal.USR1 if number % 4 < 2 else PreemptSignal.TERM, restart=number % 9 != 4
        ),
        restarts=RestartPolicy(limit=2, infrastructure=4, backoff=timedelta()),
    )


def sharing(scenario: Scenario) -> Scenario:
    """The same where most jobs want portions of GPUs, by their part or by their memory, of one GPU or of several."""
    crowd = crowded(scenario)
    specs = tuple((at, _in_portions(spec, number)) for number, (at, spec) in enumerate(crowd.specs))
    return replace(crowd, specs=specs)


def _in_portions(spec: JobSpec, number: int) -> JobSpec:
    part, memory = ((500, None), (250, None), (None, 20 * GIB), (None, None), (700, None))[number % 5]
    needs = replace(spec.roles[0].resources, gpus=1 + number % 7 // 5, gpu_portion=part, gpu_memory=memory)
    roles = tuple(replace(role, count=1 + number % 2, resources=needs) for role in spec.roles)
    return replace(spec, roles=roles, on_preempt=replace(spec.on_preempt, signal=PreemptSignal.TERM))


def peaceful(scenario: Scenario) -> Scenario:
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
