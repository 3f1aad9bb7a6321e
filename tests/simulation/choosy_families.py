"""Families of scenarios in which nodes differ, and jobs say which of them they want."""

from dataclasses import replace
from datetime import timedelta

from muster.domain.jobs.job import JobSpec, Resources
from muster.domain.jobs.placing.affinity import Affinity, LabelExpression, LabelOperator, PreferredTerm
from muster.domain.jobs.placing.pool_choice import PoolChoice
from muster.domain.jobs.placing.topology import ANYWHERE, Topology
from tests.simulation.scenario import Scenario

PROFILES = (("3g.40gb", "1g.10gb", "1g.10gb"), (), ("1g.10gb",) * 7)
"""How the first GPU of a node is divided."""


def labelled(scenario: Scenario) -> Scenario:
    """Nodes have labels of several kinds, and jobs need some of them, or would rather have them, or lie in one rack."""
    parts = tuple(
        replace(
            parts, labels={**parts.labels, "rack": f"r{number // 2}", **({"gen": str(number)} if number % 3 else {})}
        )
        for number, parts in enumerate(scenario.parts, start=1)
    )
    return replace(
        scenario,
        parts=parts,
        specs=tuple((at, _selective(spec, number)) for number, (at, spec) in enumerate(scenario.specs)),
    )


def divided(scenario: Scenario) -> Scenario:
    """Some GPUs are divided, in two pools with racks; jobs ask for MIG devices by profile, and for pools in order."""
    parts = tuple(
        replace(
            parts,
            gpus=max(2, parts.gpus),
            profiles=PROFILES[number % len(PROFILES)],
            labels={**parts.labels, "rack": f"r{number // 2}", "pool": "even" if number % 2 else "odd"},
        )
        for number, parts in enumerate(scenario.parts)
    )
    specs = tuple((at, _slice_wanting(spec, number)) for number, (at, spec) in enumerate(scenario.specs * 2))
    return replace(scenario, parts=parts, specs=specs, seconds=scenario.seconds + 100.0)


def _slice_wanting(spec: JobSpec, number: int) -> JobSpec:
    """A job of MIG devices, of whole GPUs, or of none, that goes to one pool first and to another later."""
    mig = (None, "1g.10gb", "3g.40gb", "1g.10gb")[number % 4]
    roles = tuple(
        replace(
            role,
            count=1 + number % 3,
            resources=Resources(gpus=1 + (mig == "1g.10gb" and number % 5 == 0), mig=mig, cpu_millis=500),
        )
        for role in spec.roles[:1]
    )
    odd, even = PoolChoice(pool="odd"), PoolChoice(pool="even")
    later = replace(even, after=timedelta(seconds=10 + number % 4 * 30))
    zone = LabelExpression(key="zone", values=("ab"[number % 2],))
    return replace(
        spec,
        roles=roles,
        node_labels={},
        max_per_node=None,
        pools=((odd, later), (), (even, odd), (odd, later), ())[number % 5],
        affinity=Affinity(preferred=(PreferredTerm(all=(zone,)),)) if number % 3 else Affinity(required=((zone,),)),
        topology=(ANYWHERE, Topology(required="rack"))[number % 2],
    )


def _selective(spec: JobSpec, number: int) -> JobSpec:
    zone = LabelExpression(key="zone", values=("ab"[number % 2],))
    new = LabelExpression(key="gen", operator=LabelOperator.GT, values=("2",))
    bare = LabelExpression(key="gen", operator=LabelOperator.DOES_NOT_EXIST)
    affinity = (
        Affinity(preferred=(PreferredTerm(weight=number % 3 + 1, all=(zone,)), PreferredTerm(all=(bare,)))),
        Affinity(required=((zone, new), (bare,))),
        Affinity(required=((replace(zone, operator=LabelOperator.NOT_IN),),), preferred=(PreferredTerm(all=(new,)),)),
        Affinity(required=((zone,), (bare,))),
    )[number % 4]
    topology = (ANYWHERE, Topology(required="rack"), Topology(required="zone", preferred="rack"))[number % 3]
    return replace(spec, node_labels={}, affinity=affinity, topology=topology)
