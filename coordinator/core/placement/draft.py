"""A node while a gang is being placed on it."""

from coordinator.core.placement.capacity import Capacity
from coordinator.core.placement.devices import is_of_kind, matching, pick
from coordinator.core.placement.parts import Part
from coordinator.core.placement.portions.shared_gpu import unshared
from coordinator.core.placement.shared_draft import SharedDraft
from coordinator.core.placement.suitable import excluded, unfit
from muster.domain.ids import GpuUuid
from muster.domain.jobs.job import JobSpec, Resources
from muster.domain.jobs.placing.portion import Portion
from muster.domain.quantity import counted, format_cpus, size_text


class Draft:
    """What is left of a node beside what this gang has taken."""

    def __init__(self, capacity: Capacity) -> None:
        self.capacity = capacity
        self.gpus = list(capacity.gpus)
        self.shared = capacity.shared
        self.cpu_millis = capacity.cpu_millis
        self.memory = capacity.memory
        self.disk = capacity.disk
        self.ports = capacity.ports
        self.taken = 0

    def slots(self, spec: JobSpec, part: Part) -> int:
        """How many more executions of a part fit."""
        if (unfit(spec, part.role, self.capacity) or excluded(spec, self.capacity)) is not None:
            return 0
        need = part.role.resources
        limits = [part.count]
        if part.ports:
            limits.append(int(self.ports.isdisjoint(part.ports)))
        if need.gpus and need.portion is None:
            limits.append(len(matching(self.gpus, need)) // need.gpus)
        if need.cpu_millis:
            limits.append(self.cpu_millis // need.cpu_millis)
        if need.memory:
            limits.append(self.memory // need.memory)
        if need.disk:
            limits.append(self.disk // need.disk)
        if spec.max_per_node is not None:
            limits.append(spec.max_per_node - self.taken)
        if (portion := need.portion) is not None:
            limits.append(SharedDraft(self.gpus, self.shared).slots(need, portion, min(limits)))
        return max(0, min(limits))

    def take(self, need: Resources, ports: frozenset[int]) -> tuple[GpuUuid, ...]:
        """Seat one more execution."""
        if (portion := need.portion) is not None:
            gpus = self._take_portions(need, portion)
        else:
            gpus = pick(matching(self.gpus, need), need.gpus)
            if gpus:
                self.gpus = [] if len(gpus) == len(self.gpus) else [gpu for gpu in self.gpus if gpu.uuid not in gpus]
        self.cpu_millis -= need.cpu_millis
        self.memory -= need.memory or 0
        self.disk -= need.disk or 0
        self.ports |= ports
        self.taken += 1
        return gpus

    def _take_portions(self, need: Resources, portion: Portion) -> tuple[GpuUuid, ...]:
        draft = SharedDraft(self.gpus, self.shared)
        chosen = draft.take(need, portion)
        self.gpus, self.shared = draft.gpus, tuple(draft.shared.values())
        return chosen

    def lack(self, spec: JobSpec, part: Part) -> str:
        """What is missing for one more execution of a part."""
        unsuitable = unfit(spec, part.role, self.capacity) or excluded(spec, self.capacity)
        if unsuitable is not None:
            return unsuitable
        need = part.role.resources
        if spec.max_per_node is not None and self.taken >= spec.max_per_node:
            return f"has {counted(self.taken, 'execution')} of this job, as many as max_per_node allows"
        if not self.ports.isdisjoint(part.ports):
            return f"needs port {min(self.ports & part.ports)}, which another execution there has"
        if (lacking := self._lacks_gpus(need)) is not None:
            return lacking
        if self.cpu_millis < need.cpu_millis:
            one = "" if need.cpu_millis == 1000 else "s"  # noqa: PLR2004 - a whole CPU
            return f"needs {need.cpu_millis / 1000:g} CPU{one}, {max(0, self.cpu_millis) / 1000:g} are free"
        short = self.memory < (need.memory or 0)
        what, wanted, free = ("memory", need.memory, self.memory) if short else ("disk", need.disk, self.disk)
        return f"needs {size_text(wanted or 0)} of {what}, {size_text(max(0, free))} are free"

    def _lacks_gpus(self, need: Resources) -> str | None:
        """What is missing of GPUs for one more execution; None: nothing is."""
        portion = need.portion
        if portion is None:
            found = len(matching(self.gpus, need))
            return None if found >= need.gpus else f"needs {_kind(need)}, {found} {'is' if found == 1 else 'are'} free"
        if SharedDraft(self.gpus, self.shared).slots(need, portion, 1):
            return None
        of = [each for each in self.shared if is_of_kind(each.gpu.model, each.gpu.mig, need)]
        of += [unshared(gpu) for gpu in matching(self.gpus, need)]
        wanted = f"needs {portion_text(need, portion)}"
        if not of:
            return f"{wanted}, 0 GPUs are free"
        if need.gpus > 1:
            return f"{wanted}, {sum(each.holds(portion) for each in of)} have so much free"
        if portion.memory:
            return f"{wanted}, {size_text(max(0, *(each.memory for each in of)))} are free of the one that has most"
        return f"{wanted}, {format_cpus(max(0, *(each.thousandths for each in of)))} is free of the one that has most"

    def reason(self, spec: JobSpec, part: Part) -> str:
        """What the node lacks; a node that could take some says how many."""
        lack = self.lack(spec, part)
        return f"has room for {self.taken}; for one more it {lack}" if self.taken else lack


def portion_text(need: Resources, portion: Portion) -> str:
    """The portions that are asked for: `0.5 of a GPU`, `20 GiB of each of 2 GPUs`."""
    amount = size_text(portion.memory) if portion.memory else format_cpus(portion.thousandths)
    model = f"{need.gpu_model} " if need.gpu_model else ""
    return f"{amount} of a {model}GPU" if need.gpus == 1 else f"{amount} of each of {need.gpus} {model}GPUs"


def _kind(need: Resources) -> str:
    """The GPUs that are asked for: `2 H100 GPUs`, `1 MIG device 1g.10gb`."""
    model = f"{need.gpu_model} " if need.gpu_model else ""
    if need.mig is None:
        return f"{need.gpus} {model}GPU{'' if need.gpus == 1 else 's'}"
    return f"{need.gpus} {model}MIG device{'' if need.gpus == 1 else 's'} {need.mig}"
