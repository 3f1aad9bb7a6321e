"""What a job asks of labels and MIG profiles that no node has, most probably by mistake."""

from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet

from coordinator.core.placement.bins import Capacities, mig_profiles
from muster.domain.fleet.pool import NODE_TYPE_LABEL
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.placing.affinity import NUMERIC, LabelExpression, LabelOperator
from muster.domain.quoting import did_you_mean

_THERE = NUMERIC | {LabelOperator.IN, LabelOperator.EXISTS}
"""Operators that need a label."""


def unknown_label(spec: JobSpec, labels: Collection[tuple[str, str]]) -> str | None:
    """The first label that a job needs and no node carries, with what was probably meant; None: there is none.

    `labels` are those that nodes carry, with their values. An affinity needs a label only if all of its terms do.
    """
    values: dict[str, set[str]] = {}
    for name, value in labels:
        values.setdefault(name, set()).add(value)
    for name, value in spec.node_labels.items():
        if (unknown := _unknown(name, (value,), values)) is not None:
            return unknown
    if spec.node_types and (unknown := _unknown(NODE_TYPE_LABEL, spec.node_types, values)) is not None:
        return unknown
    if spec.topology.required is not None and (unknown := _unknown(spec.topology.required, (), values)) is not None:
        return unknown
    terms = [_unknown_in_term(term, values) for term in spec.affinity.required]
    return terms[0] if terms and None not in terms else None


def unknown_in(spec: JobSpec, nodes: Capacities) -> str | None:
    """The first label or MIG profile that a job needs and none of the nodes has; None: there is none."""
    return unknown_label(spec, nodes.labels.carried) or unknown_profile(spec, mig_profiles(nodes))


def unknown_profile(spec: JobSpec, known: Collection[str]) -> str | None:
    """The first MIG profile that a job needs and no node has, with what was probably meant; None: there is none."""
    unknown = next((mig for role in spec.roles if (mig := role.resources.mig) is not None and mig not in known), None)
    if unknown is None:
        return None
    if not known:
        return "no node has MIG devices; an operator divides GPUs, or ask for whole ones"
    there = ", ".join(sorted(known))
    return f"no node has MIG devices {unknown}{did_you_mean(unknown, known) or f'; there are {there}'}"


def _unknown_in_term(term: Iterable[LabelExpression], values: Mapping[str, AbstractSet[str]]) -> str | None:
    asked = (each for each in term if each.operator in _THERE)
    found = (_unknown(each.key, each.values if each.operator is LabelOperator.IN else (), values) for each in asked)
    return next(filter(None, found), None)


def _unknown(name: str, wanted: Collection[str], values: Mapping[str, AbstractSet[str]]) -> str | None:
    """What is said where no node carries a label with one of these values, or with any if there are none."""
    if name not in values:
        return f"no node has the label {name}{did_you_mean(name, values)}"
    if not wanted or not values[name].isdisjoint(wanted):
        return None
    first = next(iter(wanted))
    others = "" if len(wanted) == 1 else f" or another of these {len(wanted)} values"
    return f"no node has the label {name}={first}{others}{did_you_mean(first, values[name])}"
