"""Whether a node is suitable for a role at all, however free it is."""

from collections.abc import Iterable, Sequence

from coordinator.core.placement.capacity import Capacity
from muster.domain.fleet.features import MEANINGS, needed
from muster.domain.fleet.node import RuntimeOffer
from muster.domain.jobs.job import JobSpec, Role, RuntimeKind


def unfit(spec: JobSpec, role: Role, capacity: Capacity) -> str | None:
    """Why a node is not suitable at all for a role, however free it is; None: it is."""
    if capacity.problem is not None:
        return capacity.problem
    lacking = [f"{key}={value}" for key, value in spec.node_labels.items() if capacity.labels.get(key) != value]
    if lacking:
        return f"does not carry the label {', '.join(lacking)}"
    missing = needed(spec, role) - capacity.features
    if missing:
        words = ", ".join(sorted(MEANINGS.get(word, word) for word in missing))
        return f"has an agent that does not know {words}; upgrade it"
    return _runtime_problem(capacity.runtimes, role)


def _runtime_problem(offers: Sequence[RuntimeOffer], role: Role) -> str | None:
    offer = next((offer for offer in offers if offer.kind is role.runtime), None)
    if offer is None:
        needs = "containers" if role.runtime is RuntimeKind.DOCKER else "plain processes"
        return f"does not run {needs} (its agent offers {_words(offers)})"
    if offer.problem is not None:
        return f"cannot run executions with {offer.kind}: {offer.problem}"
    if role.resources.gpus and not offer.gpus:
        return f"has a {offer.kind} runtime that cannot hand out GPUs"
    return None


def _words(offers: Iterable[RuntimeOffer]) -> str:
    return ", ".join(offer.kind for offer in offers) or "no runtime"
