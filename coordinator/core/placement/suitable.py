"""Whether a node is suitable for a role at all, however free it is."""

from collections.abc import Iterable, Mapping, Sequence

from coordinator.core.placement.capacity import Capacity
from muster.domain.fleet.features import MEANINGS, needed
from muster.domain.fleet.node import RuntimeOffer
from muster.domain.fleet.pool import NODE_TYPE_LABEL
from muster.domain.jobs.job import JobSpec, Role, RuntimeKind
from muster.domain.jobs.placing.taint import cost_of_taints, forbidding, tolerates


def unfit(spec: JobSpec, role: Role, capacity: Capacity, features: frozenset[str] | None = None) -> str | None:
    """Why a node is not suitable at all for a role, however free it is; None: it is.

    `features` are those that the role needs, for who has worked them out already.
    """
    if capacity.problem is not None:
        return capacity.problem
    if (labels := _label_problem(spec, capacity.labels)) is not None:
        return labels
    if capacity.taints and (refusal := _taint_problem(spec, capacity)) is not None:
        return refusal
    missing = (needed(spec, role) if features is None else features) - capacity.features
    if missing:
        words = ", ".join(sorted(MEANINGS.get(word, word) for word in missing))
        return f"has an agent that does not know {words}; upgrade it"
    return _runtime_problem(capacity.runtimes, role)


def excluded(spec: JobSpec, capacity: Capacity) -> str | None:
    """Why this very node takes none of the executions of a job, though others like it do; None: it does."""
    if capacity.node in spec.exclude_nodes:
        return "is one of the nodes that the job excludes"
    if spec.exclusive and not capacity.idle:
        return "runs something else, and the job wants its nodes for itself"
    return None


def cost(spec: JobSpec, capacity: Capacity) -> int:
    """How little a job likes a node on which it may be placed: nodes that cost less are filled first."""
    taints = cost_of_taints(capacity.taints, spec.tolerations) if capacity.taints else 0
    return taints + (spec.affinity.cost(capacity.labels) if spec.affinity.preferred else 0)


def asked_labels(spec: JobSpec) -> frozenset[str]:
    """The labels of which a node must carry a certain value to be suitable for a job."""
    return frozenset(spec.node_labels) | ({NODE_TYPE_LABEL} if spec.node_types else frozenset())


def _label_problem(spec: JobSpec, labels: Mapping[str, str]) -> str | None:
    wanted = spec.node_labels
    if wanted and (lacking := [f"{key}={value}" for key, value in wanted.items() if labels.get(key) != value]):
        return f"does not carry the label {', '.join(lacking)}"
    if spec.node_types and labels.get(NODE_TYPE_LABEL) not in spec.node_types:
        return f"is not of the type {' or '.join(spec.node_types)}"
    return spec.affinity.broken_by(labels) if spec.affinity.required else None


def _taint_problem(spec: JobSpec, capacity: Capacity) -> str | None:
    taint = forbidding(capacity.taints, spec.tolerations)
    if taint is None:
        return None
    if any(tolerates(each, taint) for each in spec.tolerations):
        return f"has the taint {taint}, which the job tolerates only where it runs already (tolerations[].seconds)"
    return f"has the taint {taint}, which the job does not tolerate"


def _runtime_problem(offers: Sequence[RuntimeOffer], role: Role) -> str | None:
    offer = _offer(offers, role.runtime)
    if offer is None:
        needs = "containers" if role.runtime is RuntimeKind.DOCKER else "plain processes"
        return f"does not run {needs} (its agent offers {_words(offers)})"
    if offer.problem is not None:
        return f"cannot run executions with {offer.kind}: {offer.problem}"
    if role.resources.gpus and not offer.gpus:
        return f"has a {offer.kind} runtime that cannot hand out GPUs"
    return None


def _offer(offers: Sequence[RuntimeOffer], kind: RuntimeKind) -> RuntimeOffer | None:
    for offer in offers:
        if offer.kind is kind:
            return offer
    return None


def _words(offers: Iterable[RuntimeOffer]) -> str:
    return ", ".join(offer.kind for offer in offers) or "no runtime"
