"""What a job may say about where it goes."""

from collections.abc import Iterator

from muster.domain.fault import Fault
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.placing.toleration import TaintEffect, Toleration, TolerationOperator
from muster.domain.jobs.rules import job_values as values
from muster.domain.quantity import MAX_DURATION

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
