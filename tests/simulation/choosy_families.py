"""Families of scenarios in which nodes differ, and jobs say which of them they want."""

from dataclasses import replace

from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.placing.affinity import Affinity, LabelExpression, LabelOperator, PreferredTerm
from muster.domain.jobs.placing.topology import ANYWHERE, Topology
from tests.simulation.scenario import Scenario


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
