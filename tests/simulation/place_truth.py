"""What must be true of where a gang is placed, by what the labels of its nodes say."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from coordinator.core.records import Job, Node
from muster.domain.jobs.placing.affinity import LabelExpression
from tests.simulation.world import Violation


def check_places(job: Job, placed_at: datetime | None, nodes: Sequence[Node]) -> None:
    """A gang was placed on these nodes, in the order of ranks."""
    if nodes:
        _check_pool(job, placed_at, {node.inventory.labels.get("pool", "") for node in nodes})
    terms = job.spec.affinity.required
    for node in nodes:
        _check_node(job, node)
        labels = node.inventory.labels
        if terms and not any(all(_says(each, labels) for each in term) for term in terms):
            raise Violation(f"{job.id} is placed on {node.name}, which it does not want", job.id, node.name)
    level = job.spec.topology.required
    if level is not None and len({node.inventory.labels.get(level) for node in nodes}) != 1:
        raise Violation(f"{job.id} is placed in more than one {level}", job.id)


def _check_node(job: Job, node: Node) -> None:
    """Look at what a job says of each of its nodes: labels, types, and which it must not have."""
    labels, about = node.inventory.labels, (job.id, node.name)
    if node.name in job.spec.exclude_nodes:
        raise Violation(f"{job.id} is placed on {node.name}, which it excludes", *about)
    if not job.spec.node_labels.items() <= labels.items():
        raise Violation(f"{job.id} is placed on {node.name}, which has not all of its labels", *about)
    if job.spec.node_types and labels.get("type") not in job.spec.node_types:
        raise Violation(f"{job.id} is placed on {node.name}, which is of another type", *about)


def _check_pool(job: Job, placed_at: datetime | None, pools: set[str]) -> None:
    """Look at the one pool in which a gang is, and at how long its job has been there at least."""
    if len(pools) > 1:
        raise Violation(f"{job.id} is placed in several pools", job.id)
    (pool,) = pools
    choices = [choice for choice in job.spec.pools if choice.pool == pool]
    if job.spec.pools and not choices:
        raise Violation(f"{job.id} is placed in {pool}, which it does not name", job.id)
    for choice in choices:
        if choice.after is not None and placed_at is not None and placed_at < job.submitted_at + choice.after:
            raise Violation(f"{job.id} is placed in {pool} before it may go there", job.id)


def _says(expression: LabelExpression, labels: Mapping[str, str]) -> bool:
    """Whether an expression holds; written once more, and more plainly."""
    there, value = expression.key in labels, labels.get(expression.key, "")
    match str(expression.operator):
        case "In":
            return there and value in expression.values
        case "NotIn":
            return not there or value not in expression.values
        case "Exists":
            return there
        case "DoesNotExist":
            return not there
        case "Gt":
            return value.isdigit() and int(value) > int(expression.values[0])
    return value.isdigit() and int(value) < int(expression.values[0])
