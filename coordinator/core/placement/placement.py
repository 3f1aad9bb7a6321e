"""Gang placement: all executions of a job get their seats in one decision, or none does, with the reason per node.

Pure and deterministic: the same job and the same capacities always give the same placement. The cost grows with the
size of the gang and with the number of node classes, not with the number of nodes.
"""

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from coordinator.core.placement.capacity import Capacities, Capacity, Key, NodeClass, key_of
from coordinator.core.placement.devices import matching, pick
from coordinator.core.placement.parts import Part, part_of
from muster.domain.fleet.features import MEANINGS, needed
from muster.domain.fleet.node import RuntimeOffer
from muster.domain.ids import GpuUuid, NodeId
from muster.domain.jobs.explanation import NodeRefusal
from muster.domain.jobs.job import JobSpec, Packing, Resources, Role, RuntimeKind
from muster.domain.quantity import counted, size_text

_Place = tuple[NodeId, tuple[GpuUuid, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """Where one execution goes."""

    rank: int
    node: NodeId
    gpus: tuple[GpuUuid, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """A seat for every execution, by rank."""

    seats: tuple[Seat, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoFit:
    """The gang does not fit, and why."""

    wanted: int
    found: int
    """How many executions would fit."""
    nodes: int
    """How many were looked at."""

    def __str__(self) -> str:
        if not self.nodes:
            return f"needs room for {counted(self.wanted, 'execution')}, but no node has joined"
        fit = f"{self.found} {'fits' if self.found == 1 else 'fit'}"
        return f"needs room for {counted(self.wanted, 'execution')} at once; {fit}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Available:
    """The capacities that a search may use."""

    capacities: Capacities
    without: NodeId | None = None
    """A node that is left out."""

    def __len__(self) -> int:
        return len(self.capacities) - (self.without in self.capacities)

    def classes(
        self, taken: Collection[NodeId], ports: Collection[int]
    ) -> Iterator[tuple[NodeClass, int, Iterator[Key]]]:
        """The node classes, each with how many nodes of it are neither left out nor taken, and these.

        Nodes that have given one of these ports away are left out.
        """
        out = {*taken, *(() if self.without is None else (self.without,)), *self.capacities.holders(ports)}
        missing = Counter(id(self.capacities.class_of(node)) for node in out)
        for node_class in self.capacities.classes():
            left = len(node_class.keys) - missing[id(node_class)]
            if left:
                yield node_class, left, (key for key in node_class.keys if key[1] not in out)


def place(spec: JobSpec, available: Available) -> Placement | NoFit:
    """Seats for the whole gang, or NoFit.

    `pack` fills as few nodes as possible and takes the tightest fit last, which keeps whole nodes free for the next
    large job; `spread` takes one more execution wherever the job has the fewest. Ranks are dealt out in node order, so
    neighbouring ranks share a node. Roles are seated in the order of the job; where that leaves no room for a role that
    needs much, the one that needs most is seated first.
    """
    as_given = range(len(spec.roles))
    seats, found = _seat(spec, available, as_given)
    if found < spec.size and len(spec.roles) > 1:
        by_demand = sorted(as_given, key=lambda place_in_job: _demand(spec.roles[place_in_job]), reverse=True)
        seats, _ = _seat(spec, available, by_demand)
    if len(seats) < spec.size:
        return NoFit(wanted=spec.size, found=found, nodes=len(available))
    return Placement(seats=tuple(Seat(rank=rank, node=node, gpus=gpus) for rank, (node, gpus) in enumerate(seats)))


def fits(spec: JobSpec, available: Available) -> bool:
    """Whether the gang fits; cheaper than to place it where its executions are identical."""
    part = part_of(spec, 0)
    if len(spec.roles) > 1 or part.first:
        return isinstance(place(spec, available), Placement)
    return (
        sum(draft_class.slots * draft_class.size for draft_class in _draft_classes(spec, part, available, {}))
        >= spec.size
    )


def refusals(spec: JobSpec, available: Available) -> tuple[NodeRefusal, ...]:
    """What each node lacks for one more execution, by node; for a job that does not fit."""
    drafts: dict[NodeId, _Draft] = {}
    for place_in_job in range(len(spec.roles)):
        part = part_of(spec, place_in_job)
        counts = _counts(spec, part, available, drafts)
        whole = sum(counts.values()) == part.count
        if not whole:
            _take(part, counts, available, drafts)
        elif _take_all(spec, part, counts, available, drafts):
            continue
        lacking = part.alone if whole else part
        nodes = sorted(
            (capacity.node for capacity in available.capacities if capacity.node != available.without), key=key_of
        )
        every = (drafts.get(node) or _Draft(available.capacities.of(node)) for node in nodes)
        return tuple(NodeRefusal(node=draft.capacity.node, reason=_reason(draft, spec, lacking)) for draft in every)
    return ()


class _Draft:
    """A node while a gang is being placed on it: what is left beside what this gang has taken."""

    def __init__(self, capacity: Capacity, ports: frozenset[int] | None = None) -> None:
        self.capacity = capacity
        self.gpus = list(capacity.gpus)
        self.cpu_millis = capacity.cpu_millis
        self.memory = capacity.memory
        self.ports = capacity.ports if ports is None else ports
        self.taken = 0

    def slots(self, spec: JobSpec, part: Part) -> int:
        """How many more executions of a part fit."""
        if unfit(spec, part.role, self.capacity) is not None:
            return 0
        need = part.role.resources
        limits = [part.count]
        if part.ports:
            limits.append(int(self.ports.isdisjoint(part.ports)))
        if need.gpus:
            limits.append(len(matching(self.gpus, need)) // need.gpus)
        if need.cpu_millis:
            limits.append(self.cpu_millis // need.cpu_millis)
        if need.memory:
            limits.append(self.memory // need.memory)
        if spec.max_per_node is not None:
            limits.append(spec.max_per_node - self.taken)
        return max(0, min(limits))

    def take(self, need: Resources, ports: frozenset[int]) -> tuple[GpuUuid, ...]:
        """Seat one more execution."""
        gpus = pick(matching(self.gpus, need), need.gpus)
        self.gpus = [gpu for gpu in self.gpus if gpu.uuid not in gpus]
        self.cpu_millis -= need.cpu_millis
        self.memory -= need.memory or 0
        self.ports |= ports
        self.taken += 1
        return gpus

    def lack(self, spec: JobSpec, part: Part) -> str:
        """What is missing for one more execution of a part."""
        unsuitable = unfit(spec, part.role, self.capacity)
        if unsuitable is not None:
            return unsuitable
        need = part.role.resources
        if spec.max_per_node is not None and self.taken >= spec.max_per_node:
            return f"has {counted(self.taken, 'execution')} of this job, as many as max_per_node allows"
        if not self.ports.isdisjoint(part.ports):
            return f"needs port {min(self.ports & part.ports)}, which another execution there has"
        found = len(matching(self.gpus, need))
        if found < need.gpus:
            kind = f"{need.gpu_model} GPU" if need.gpu_model else "GPU"
            return (
                f"needs {need.gpus} {kind}{'' if need.gpus == 1 else 's'}, {found} {'is' if found == 1 else 'are'} free"
            )
        if self.cpu_millis < need.cpu_millis:
            one = "" if need.cpu_millis == 1000 else "s"  # noqa: PLR2004 - a whole CPU
            return f"needs {need.cpu_millis / 1000:g} CPU{one}, {max(0, self.cpu_millis) / 1000:g} are free"
        return f"needs {size_text(need.memory or 0)} of memory, {size_text(max(0, self.memory))} are free"


class _DraftClass:
    """Nodes on which equally many executions of a role fit, in natural order: one that the gang uses, or a class."""

    def __init__(self, draft: _Draft, slots: int, size: int, keys: Iterator[Key]) -> None:
        self.draft = draft
        self.slots = slots
        self.size = size
        self._keys = keys
        self.first: Key | None = next(keys, None)
        """The next node that was not taken from it; None: there is none left."""

    def take(self) -> NodeId:
        """Take the next node."""
        assert self.first is not None
        node = self.first[1]
        self.first = next(self._keys, None)
        return node


def _draft_classes(
    spec: JobSpec, part: Part, available: Available, drafts: Mapping[NodeId, _Draft]
) -> Iterator[_DraftClass]:
    """Where executions of a part fit."""
    for node, draft in drafts.items():
        slots = draft.slots(spec, part)
        if slots:
            yield _DraftClass(draft, slots, 1, iter([key_of(node)]))
    for node_class, size, keys in available.classes(drafts.keys(), part.ports):
        draft = _Draft(node_class.sample, ports=frozenset())
        slots = draft.slots(spec, part)
        if slots:
            yield _DraftClass(draft, slots, size, keys)


def _seat(spec: JobSpec, available: Available, order: Iterable[int]) -> tuple[list[_Place], int]:
    """Places by rank, the roles seated in this order, and how many found one; no places if not all did."""
    seats: dict[int, list[_Place]] = {}
    drafts: dict[NodeId, _Draft] = {}
    found = 0
    for place_in_job in order:
        part = part_of(spec, place_in_job)
        counts = _counts(spec, part, available, drafts)
        found += sum(counts.values())
        if sum(counts.values()) < part.count:
            return [], found
        seats[place_in_job] = _take_all(spec, part, counts, available, drafts)
        if not seats[place_in_job]:
            return [], found - 1
    return [seat for place_in_job in sorted(seats) for seat in seats[place_in_job]], found


def _take_all(
    spec: JobSpec, part: Part, counts: Mapping[NodeId, int], available: Available, drafts: dict[NodeId, _Draft]
) -> list[_Place]:
    """Give a part its seats; none where its first one finds no node that has what it alone needs.

    That one goes to the first node of the part that has it. Where none has, it is seated by itself and then the others.
    """
    if not part.first:
        return _take(part, counts, available, drafts)
    for node in sorted(counts, key=key_of):
        if (drafts.get(node) or available.capacities.of(node)).ports.isdisjoint(part.first):
            return _take(part, counts, available, drafts, leader=node)
    seats: list[_Place] = []
    for each in (part.alone, part.others):
        counts = _counts(spec, each, available, drafts)
        if sum(counts.values()) < each.count:
            return []
        seats += _take(each, counts, available, drafts)
    return seats


def _take(
    part: Part,
    counts: Mapping[NodeId, int],
    available: Available,
    drafts: dict[NodeId, _Draft],
    leader: NodeId | None = None,
) -> list[_Place]:
    """Give a part its seats, in the natural order of the nodes; those of the leader come first."""
    seats: list[_Place] = []
    for node in sorted(counts, key=lambda each: (each != leader, key_of(each))):
        if node not in drafts:
            drafts[node] = _Draft(available.capacities.of(node))
        for _ in range(counts[node]):
            ports = part.ports if seats else part.ports | part.first
            seats.append((node, drafts[node].take(part.role.resources, ports)))
    return seats


def _demand(role: Role) -> tuple[int, int, int]:
    need = role.resources
    return (need.gpus, need.cpu_millis, need.memory or 0)


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


def _counts(spec: JobSpec, part: Part, available: Available, drafts: Mapping[NodeId, _Draft]) -> dict[NodeId, int]:
    classes = list(_draft_classes(spec, part, available, drafts))
    return _spread(part.count, classes) if spec.packing is Packing.SPREAD else _pack(part.count, classes)


def _pack(count: int, classes: Sequence[_DraftClass]) -> dict[NodeId, int]:
    """Counts by node, fullest first; the remainder goes to the node with the least capacity that holds all of it."""
    counts: dict[NodeId, int] = {}
    left = count
    heap = [(-each.slots, each.first, order) for order, each in enumerate(classes)]
    heapq.heapify(heap)
    while heap:
        _, _, order = heap[0]
        widest = classes[order]
        if widest.slots >= left:
            return {**counts, _tightest(classes, left).take(): left}
        counts[widest.take()] = widest.slots
        left -= widest.slots
        if widest.first is None:
            heapq.heappop(heap)
        else:
            heapq.heapreplace(heap, (-widest.slots, widest.first, order))
    return counts


def _tightest(classes: Iterable[_DraftClass], left: int) -> _DraftClass:
    """Prefer a node that this job already uses, then the fewest slots, then the fewest idle GPUs left over."""
    holding = (each for each in classes if each.slots >= left and each.first is not None)
    return min(
        holding,
        key=lambda each: (each.draft.taken == 0, each.slots, len(each.draft.gpus), each.first),
    )


def _spread(count: int, classes: Sequence[_DraftClass]) -> dict[NodeId, int]:
    """Counts by node, one at a time to the node where this job has the fewest, then where most was free."""
    heap = [
        (draft_class.draft.taken, *_fullness(draft_class), draft_class.first, order, True)
        for order, draft_class in enumerate(classes)
    ]
    heapq.heapify(heap)
    counts: dict[NodeId, int] = {}
    for _ in range(count):
        if not heap:
            break
        taken, gpus, cpu_millis, key, order, untouched = heapq.heappop(heap)
        assert key is not None
        draft_class, node = classes[order], key[1]
        counts[node] = counts.get(node, 0) + 1
        if counts[node] < draft_class.slots:
            heapq.heappush(heap, (taken + 1, gpus, cpu_millis, key, order, False))
        if untouched:
            draft_class.take()
            if draft_class.first is not None:
                heapq.heappush(heap, (taken, gpus, cpu_millis, draft_class.first, order, True))
    return counts


def _fullness(draft_class: _DraftClass) -> tuple[int, int]:
    return (-len(draft_class.draft.gpus), -draft_class.draft.cpu_millis)


def _reason(draft: _Draft, spec: JobSpec, part: Part) -> str:
    """What the node lacks; a node that could take some says how many."""
    lack = draft.lack(spec, part)
    return f"has room for {draft.taken}; for one more it {lack}" if draft.taken else lack


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
