"""Which GPUs are fit for use, and why not: pure decisions over what NVML told."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from agent.gpus.nvml_messages import FailedGpuMessage, GpuMessage, ProcessMessage, ReadingMessage
from agent.gpus.source import GpuFault, GpuReading
from muster.domain.fleet.node import Gpu, GpuProcess
from muster.domain.ids import GpuUuid
from muster.domain.jobs.placing.mig import profile_named

XIDS: Mapping[int, str] = {
    13: "graphics engine exception",
    31: "GPU memory page fault",
    43: "GPU stopped processing",
    45: "preemptive cleanup, due to previous errors",
    48: "double bit ECC error",
    63: "ECC page retirement or row remapping was recorded",
    64: "ECC page retirement or row remapping has failed",
    74: "NVLink error",
    79: "GPU has fallen off the bus",
    92: "high rate of single bit ECC errors",
    94: "contained ECC error",
    95: "uncontained ECC error",
    119: "GSP did not answer in time",
    120: "GSP error",
}
"""NVIDIA's words, shortened. Xids that are not here reach the listener with their number only."""

CRITICAL_XIDS = frozenset({48, 63, 64, 74, 79, 92, 94, 95, 119, 120})
"""Faults that are the GPU's own; the others come from what the application did."""

RECORDED_XIDS = frozenset({63, 92})
"""Critical ones that warn of what is to come: the GPU is not to be used further, but no program ends by them."""

Xids = Mapping[GpuUuid, Sequence[int]]
"""The critical Xids of each GPU, in the order in which they came."""

NO_PROFILE = "is a MIG device whose profile the driver does not tell; update the driver"
NO_SLICES = "MIG mode is on but there are no MIG devices; make some with `nvidia-smi mig -cgi … -C`, or turn MIG off"
NOT_LISTED = "is no longer listed by the driver"


def fault(uuid: GpuUuid, xid: int) -> GpuFault:
    """The fault with its sentence."""
    return GpuFault(uuid=uuid, xid=xid, message=_sentence(xid), own=xid in CRITICAL_XIDS - RECORDED_XIDS)


def examine(message: ReadingMessage, known: Sequence[Gpu], xids: Xids) -> GpuReading:
    """Turn what NVML told into a reading; GPUs that it once told and now does not stay, as broken."""
    present = [gpu for described in message["gpus"] for gpu in _gpus(described, xids)]
    missing = [
        broken(gpu, problem, xids)
        for gpu in known
        if gpu.uuid not in {other.uuid for other in present} and (problem := _loss(gpu, message))
    ]
    strangers = [failed for failed in message["failed"] if not any(_is(failed, gpu) for gpu in missing)]
    return GpuReading(
        gpus=tuple(sorted((*present, *missing), key=lambda gpu: gpu.index)),
        driver=message["driver"],
        cuda=message["cuda"],
        problem="; ".join(f"GPU {failed['index']} {failed['problem']}" for failed in strangers) or None,
    )


def broken(gpu: Gpu, problem: str, xids: Xids) -> Gpu:
    """The GPU as it was last seen, but for its problem."""
    return replace(gpu, problems=(problem, *_sentences(xids.get(gpu.uuid, ()))), processes=())


def judge(gpus: Iterable[Gpu], assigned: AbstractSet[GpuUuid]) -> tuple[Gpu, ...]:
    """Mark GPUs on which somebody computes although no execution was given them."""
    return tuple(gpu if gpu.uuid in assigned else _with_strangers(gpu) for gpu in gpus)


def _with_strangers(gpu: Gpu) -> Gpu:
    pids = [str(process.pid) for process in gpu.processes]
    if not pids:
        return gpu
    who = f"process {pids[0]}" if len(pids) == 1 else f"processes {', '.join(pids)}"
    return replace(gpu, problems=(*gpu.problems, f"in use by {who}, which Muster did not start"))


def _gpus(message: GpuMessage, xids: Xids) -> Iterator[Gpu]:
    """Give the GPU, or its MIG devices where it is divided."""
    whole = _whole(message, xids)
    if not message["mig_enabled"]:
        yield whole
    elif not message["slices"]:
        yield replace(whole, problems=(*whole.problems, NO_SLICES))
    for piece in message["slices"]:
        uuid, profile = GpuUuid(piece["uuid"]), profile_named(piece["name"])
        yield replace(
            whole,
            uuid=uuid,
            model=piece["name"],
            mig=profile,
            memory=piece["memory"],
            nvlink_peers=(),  # MIG devices do not reach each other
            problems=(*whole.problems, *_sentences(xids.get(uuid, ())), *(() if profile else (NO_PROFILE,))),
            processes=_processes(piece["processes"]),
        )


def _whole(message: GpuMessage, xids: Xids) -> Gpu:
    uuid = GpuUuid(message["uuid"])
    return Gpu(
        uuid=uuid,
        index=message["index"],
        model=message["name"],
        memory=message["memory"],
        compute_capability=message["compute_capability"],
        pci_bus_id=message["pci_bus_id"],
        numa_node=message["numa_node"],
        nvlink_peers=tuple(GpuUuid(peer) for peer in message["nvlink_peers"]),
        mig_enabled=message["mig_enabled"],
        problems=(*_ailments(message), *_sentences(xids.get(uuid, ()))),
        processes=_processes(message["processes"]),
    )


def _ailments(message: GpuMessage) -> Iterator[str]:
    if errors := message["ecc_uncorrected"]:
        yield f"{errors} uncorrected ECC error{'s' if errors > 1 else ''}; reset the GPU"
    if message["remap_pending"]:
        yield "a row of its memory waits to be remapped; reset the GPU"
    if message["remap_failed"]:
        yield "a row of its memory could not be remapped; replace the GPU"


def _sentences(xids: Iterable[int]) -> tuple[str, ...]:
    return tuple(_sentence(xid) for xid in xids)


def _sentence(xid: int) -> str:
    return f"Xid {xid}: {XIDS[xid]}" if xid in XIDS else f"Xid {xid}"


def _processes(messages: Iterable[ProcessMessage]) -> tuple[GpuProcess, ...]:
    return tuple(
        GpuProcess(pid=each["pid"], memory=each["memory"]) for each in sorted(messages, key=lambda each: each["pid"])
    )


def _loss(gpu: Gpu, message: ReadingMessage) -> str | None:
    """Say why a GPU is not listed; None if it is right that it is not."""
    for failed in message["failed"]:
        if _is(failed, gpu):
            return failed["problem"]
    divided_anew = any(other["index"] == gpu.index and other["mig_enabled"] for other in message["gpus"])
    whole_again = _is_slice(gpu) and any(other["index"] == gpu.index for other in message["gpus"])
    return None if divided_anew or whole_again else NOT_LISTED


def _is(failed: FailedGpuMessage, gpu: Gpu) -> bool:
    """Whether this is it, or a MIG device of it; one that cannot tell its UUID is known by its place."""
    if failed["uuid"] is None or _is_slice(gpu):
        return failed["index"] == gpu.index
    return failed["uuid"] == gpu.uuid


def _is_slice(gpu: Gpu) -> bool:
    return gpu.uuid.startswith("MIG-")
