"""What a job may say about where it goes."""

import re
from collections.abc import Iterator

from muster.domain.fault import Fault, Path
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.placing.affinity import NUMERIC, WHOLE_NUMBER, WITHOUT_VALUES, Affinity, LabelExpression
from muster.domain.jobs.placing.toleration import TaintEffect, Toleration, TolerationOperator
from muster.domain.jobs.placing.topology import NO_LEVEL, Topology
from muster.domain.jobs.rules import job_values as values
from muster.domain.quantity import MAX_DURATION
from muster.domain.quoting import quote

MAX_POOLS = 16
"""Pools that one job names."""
MAX_NODE_TYPES = 16
"""Types of nodes that one job names."""
MAX_EXCLUDED = 256
"""Nodes that one job excludes."""
MAX_TOLERATIONS = 16
"""Tolerations of one job."""
MAX_TOLERATED = int(MAX_DURATION.total_seconds())
"""Seconds of a toleration."""
MAX_TERMS = 16
"""Terms of `affinity.required`, and of `affinity.preferred`."""
MAX_EXPRESSIONS = 16
"""Expressions of one term of an affinity."""
MAX_EXPRESSION_VALUES = 64
"""Values of one expression of an affinity."""
MAX_WEIGHT = 100
"""The weight of a preferred term of an affinity."""


def placing_faults(spec: JobSpec) -> Iterator[Fault]:
    """What is wrong with the pools and nodes that a job names."""
    for key, count, most, what in (
        ("pools", len(spec.pools), MAX_POOLS, "pools"),
        ("node_type", len(spec.node_types), MAX_NODE_TYPES, "types"),
        ("exclude_nodes", len(spec.exclude_nodes), MAX_EXCLUDED, "nodes"),
        ("tolerations", len(spec.tolerations), MAX_TOLERATIONS, "taints"),
    ):
        if count > most:
            yield Fault(path=(key,), message=f"names {count} {what}; {most} are the most")
    yield from _pools(spec)
    for key, names in (("node_type", spec.node_types), ("exclude_nodes", spec.exclude_nodes)):
        for place, name in enumerate(names):
            if wrong := values.filled(name):
                yield Fault(path=(key, place), message=wrong.message)
    for place, toleration in enumerate(spec.tolerations):
        for key, message in _toleration(toleration):
            yield Fault(path=("tolerations", place, key), message=message)
    yield from _affinity(spec.affinity)
    yield from _topology(spec.topology)


def _topology(topology: Topology) -> Iterator[Fault]:
    for key, level in (("required", topology.required), ("preferred", topology.preferred)):
        if level is not None and (wrong := values.node_label(level)):
            yield Fault(path=("topology", key), message=wrong.message)
    if topology.required == NO_LEVEL:
        message = f"is {NO_LEVEL}, which is for `preferred`; leave `required` out"
        yield Fault(path=("topology", "required"), message=message)


def _affinity(affinity: Affinity) -> Iterator[Fault]:
    for key, terms in (("required", affinity.required), ("preferred", affinity.preferred)):
        if len(terms) > MAX_TERMS:
            message = f"names {len(terms)} terms; {MAX_TERMS} are the most"
            yield Fault(path=("affinity", key), message=message)
    for place, term in enumerate(affinity.required):
        yield from _term(("affinity", "required", place), term)
    for place, preferred in enumerate(affinity.preferred):
        if wrong := values.number(preferred.weight, 1, MAX_WEIGHT):
            yield Fault(path=("affinity", "preferred", place, "weight"), message=wrong.message)
        yield from _term(("affinity", "preferred", place, "all"), preferred.all)


def _term(path: Path, term: tuple[LabelExpression, ...]) -> Iterator[Fault]:
    if not term:
        yield Fault(path=path, message="has no expressions; give it at least one, or remove it")
    if len(term) > MAX_EXPRESSIONS:
        yield Fault(path=path, message=f"names {len(term)} expressions; {MAX_EXPRESSIONS} are the most")
    for place, expression in enumerate(term):
        for key, message in _expression(expression):
            yield Fault(path=(*path, place, *key), message=message)


def _expression(expression: LabelExpression) -> Iterator[tuple[Path, str]]:
    """What is wrong with an expression, each with its key."""
    operator, given = expression.operator, expression.values
    if wrong := values.node_label(expression.key):
        yield ("key",), wrong.message
    for place, value in enumerate(given):
        if wrong := values.name_like(value):
            yield ("values", place), wrong.message
        elif operator in NUMERIC and re.fullmatch(WHOLE_NUMBER, value, re.ASCII) is None:
            yield ("values", place), f"must be a whole number for operator: {operator}, not {quote(value)}"
    if len(given) > MAX_EXPRESSION_VALUES:
        yield ("values",), f"names {len(given)} values; {MAX_EXPRESSION_VALUES} are the most"
    elif operator in WITHOUT_VALUES and given:
        yield ("values",), f"stands beside operator: {operator}, which takes none; leave it out"
    elif operator in NUMERIC and len(given) != 1:
        yield ("values",), f"must be one number for operator: {operator}"
    elif operator not in WITHOUT_VALUES and not given:
        yield ("values",), f"is missing; operator: {operator} needs at least one"


def _toleration(toleration: Toleration) -> Iterator[tuple[str, str]]:
    """What is wrong with a toleration, each with its key."""
    if toleration.key and (wrong := values.node_label(toleration.key)):
        yield "key", wrong.message
    if not toleration.key and toleration.operator is not TolerationOperator.EXISTS:
        yield "key", "is missing; only a toleration with operator: Exists is for taints of any key"
    if wrong := values.job_label(toleration.value):
        yield "value", wrong.message
    elif toleration.value and toleration.operator is TolerationOperator.EXISTS:
        yield "value", "stands beside operator: Exists, which takes any value; leave one of them out"
    if toleration.seconds is not None:
        if wrong := values.number(toleration.seconds, 1, MAX_TOLERATED):
            yield "seconds", wrong.message
        elif toleration.effect is not TaintEffect.NO_EXECUTE:
            yield "seconds", "is for effect: NoExecute alone, as other taints end nothing"


def _pools(spec: JobSpec) -> Iterator[Fault]:
    first: dict[str, int] = {}
    for place, choice in enumerate(spec.pools):
        if wrong := values.label(choice.pool):
            yield Fault(path=("pools", place, "pool"), message=wrong.message, suggestion=wrong.suggestion)
        if choice.pool in first:
            message = values.twice("the pool", choice.pool, f"pools[{first[choice.pool]}]").message
            yield Fault(path=("pools", place, "pool"), message=message)
        first.setdefault(choice.pool, place)
        if choice.after is not None and (wrong := values.duration(choice.after)):
            yield Fault(path=("pools", place, "after"), message=wrong.message)
    if spec.pools and all(choice.after is not None for choice in spec.pools):
        message = "has no pool to begin with; name one without `after`"
        yield Fault(path=("pools",), message=message)
