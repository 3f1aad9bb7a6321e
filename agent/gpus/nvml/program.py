"""The NVML process: `python -m agent.gpus.nvml.program` reads GPUs for the agent, as a driver call can hang for ever.

A call that is stuck in the driver cannot be interrupted, not even by a signal; in a process of its own it costs the
agent nothing but a child that does not answer. Every line on standard input is a request; answers and faults are lines
of JSON (`agent.gpus.nvml_messages`). Ends when standard input does. The only module that imports pynvml.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pynvml as nvml

from agent.gpus.nvml_messages import (
    PROCESSES,
    READ,
    USE,
    FailedGpuMessage,
    FaultMessage,
    GpuMessage,
    GpuUseMessage,
    Message,
    ProcessesMessage,
    ProcessMessage,
    SliceMessage,
    UseMessage,
)

Value = TypeVar("Value")
Handle = Any
"""A pointer that only NVML understands."""

Record = Any
"""One of NVML's structures."""

EVENT_PAUSE = 0.5
"""Seconds between two looks for Xids while nobody asks for a reading."""

PCI_DEVICES = Path("/sys/bus/pci/devices")
ANY_INSTANCE = 0xFFFFFFFF
"""NVML's word for: not about one MIG instance."""

SLOWED_DOWN = 0x04 | 0x08 | 0x20 | 0x40 | 0x80
"""A limit of power, hardware slow-down, heat by software and by hardware, and the power brake.

nvmlClocksEventReasons of https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html.
"""

NUMA_WORDS = 16
"""Space for 1024 NUMA nodes."""


def main() -> None:
    """Serve standard input until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole foreground group; the agent decides
    answers = os.dup(1)
    os.dup2(2, 1)  # whatever the library prints must not come between the answers
    try:
        _serve(requests=0, answers=answers)
    except BrokenPipeError:
        return  # the agent is gone
    except nvml.NVMLError as error:
        _send(answers, {"kind": "problem", "problem": explain(error)})


def explain(error: nvml.NVMLError) -> str:
    """Say what is wrong with the driver as a whole, and what to do."""
    match error.value:
        case nvml.NVML_ERROR_LIBRARY_NOT_FOUND:
            return "libnvidia-ml.so.1 is there but cannot be loaded; reinstall the libraries of the NVIDIA driver"
        case nvml.NVML_ERROR_DRIVER_NOT_LOADED:
            return "the NVIDIA kernel driver is not loaded; try `modprobe nvidia` and look for NVRM in `dmesg`"
        case nvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH:
            return "the NVIDIA kernel driver and libnvidia-ml.so.1 differ in version; reboot, or reload the driver"
    return f"NVML failed: {error}"


def sysfs_numa_node(pci_bus_id: str, devices: Path = PCI_DEVICES) -> int | None:
    """Tell the NUMA node that the kernel knows for a PCI device; None where there is only one."""
    try:
        node = int((devices / pci_bus_id / "numa_node").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return node if node >= 0 else None


def _serve(*, requests: int, answers: int) -> None:
    nvml.nvmlInit()
    watch = NvmlWatch()
    while True:
        asked, _, _ = select.select([requests], [], [], EVENT_PAUSE if watch.handles else None)
        for fault in watch.faults():  # before the answer, so that none is older than a fault in front of it
            _send(answers, fault)
        if not asked:
            continue
        lines = os.read(requests, 4096).split(b"\n")[:-1]
        if not lines:
            return
        for line in lines:
            _send(answers, _answer(line))


def _answer(request: bytes) -> Message:
    if request == READ:
        return _reading()
    if request == PROCESSES:
        return _processes_of_all()
    return _use() if request == USE else {"kind": "caught up"}


def _use() -> UseMessage:
    """What is seen of the GPUs; one that is divided tells little of its parts."""
    gpus: dict[str, GpuUseMessage] = {}
    for index in range(nvml.nvmlDeviceGetCount()):
        with contextlib.suppress(nvml.NVMLError):
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            gpus[nvml.nvmlDeviceGetUUID(handle)] = _use_of(handle)
    return {"kind": "use", "gpus": gpus}


def _processes_of_all() -> ProcessesMessage:
    """The processes of each GPU; a GPU that is divided is shared by nobody."""
    gpus: dict[str, list[ProcessMessage]] = {}
    for index in range(nvml.nvmlDeviceGetCount()):
        with contextlib.suppress(nvml.NVMLError):
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            gpus[nvml.nvmlDeviceGetUUID(handle)] = _processes(handle)
    return {"kind": "processes", "gpus": gpus}


def _use_of(handle: Handle) -> GpuUseMessage:
    rates = _told(lambda: nvml.nvmlDeviceGetUtilizationRates(handle))
    memory = _told(lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
    reasons = _told(lambda: nvml.nvmlDeviceGetCurrentClocksEventReasons(handle))
    return {
        "percent": None if rates is None else int(rates.gpu),
        "memory": None if memory is None else int(memory.used),
        "milliwatts": _told(lambda: nvml.nvmlDeviceGetPowerUsage(handle)),
        "celsius": _told(lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
        "clock_mhz": _told(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
        "throttled": bool((reasons or 0) & SLOWED_DOWN),
    }


def _told(ask: Callable[[], Value]) -> Value | None:
    """What the driver says; None for what this GPU, or this driver, does not tell."""
    try:
        return ask()
    except (nvml.NVMLError, AttributeError):  # a library from before the function has no such symbol
        return None


def _send(answers: int, message: Message) -> None:
    line = json.dumps(message, separators=(",", ":")).encode() + b"\n"
    while line:
        line = line[os.write(answers, line) :]


class NvmlWatch:
    """The Xid events of all GPUs that can tell."""

    def __init__(self) -> None:
        self._events = nvml.nvmlEventSetCreate()
        self.handles: dict[int | None, tuple[Handle, str]] = {}
        """Handle and UUID by the handle's address, which is how an event names its GPU."""
        for index in range(nvml.nvmlDeviceGetCount()):
            self._register(index)

    def _register(self, index: int) -> None:
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            nvml.nvmlDeviceRegisterEvents(handle, nvml.nvmlEventTypeXidCriticalError, self._events)
            self.handles[_address(handle)] = (handle, nvml.nvmlDeviceGetUUID(handle))
        except nvml.NVMLError:
            return  # lost, or without events: its health is read all the same

    def faults(self) -> Iterator[FaultMessage]:
        """Take what has happened since the last call."""
        while self.handles:
            try:
                event = nvml.nvmlEventSetWait_v2(self._events, 1)
            except nvml.NVMLError:
                return  # a time-out: nothing more; any other error will show in the reading
            for uuid in self._affected(event):
                yield {"kind": "fault", "uuid": uuid, "xid": event.eventData}

    def _affected(self, event: Record) -> list[str]:
        if (known := self.handles.get(_address(event.device))) is None:
            return []
        handle, uuid = known
        return _slice_uuids(handle, event.gpuInstanceId) or [uuid]


def _address(handle: Handle) -> int | None:
    return ctypes.cast(handle, ctypes.c_void_p).value


def _slice_uuids(handle: Handle, instance: int) -> list[str]:
    """Name the MIG devices of one instance, or of the whole GPU."""
    try:
        return [
            nvml.nvmlDeviceGetUUID(piece)
            for piece in _slices(handle)
            if instance in (ANY_INSTANCE, _optional(nvml.nvmlDeviceGetGpuInstanceId, piece))
        ]
    except nvml.NVMLError:
        return []


def _reading() -> Message:
    answering: list[tuple[Handle, GpuMessage]] = []
    failed: list[FailedGpuMessage] = []
    for index in range(nvml.nvmlDeviceGetCount()):
        uuid = None
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            uuid = nvml.nvmlDeviceGetUUID(handle)
            answering.append((handle, _gpu(handle, index, uuid)))
        except nvml.NVMLError as error:
            failed.append({"index": index, "uuid": uuid, "problem": _ailment(error)})
    for handle, gpu in answering:
        gpu["nvlink_peers"] = [other["uuid"] for far, other in answering if _linked(handle, gpu, far, other)]
    return {
        "kind": "reading",
        "driver": _optional(nvml.nvmlSystemGetDriverVersion),
        "cuda": _cuda(),
        "gpus": [gpu for _, gpu in answering],
        "failed": failed,
    }


def _ailment(error: nvml.NVMLError) -> str:
    match error.value:
        case nvml.NVML_ERROR_GPU_IS_LOST:
            return "has fallen off the bus"
        case nvml.NVML_ERROR_RESET_REQUIRED:
            return "needs a reset (`nvidia-smi --gpu-reset`, or reboot)"
    return f"does not answer: {error}"


def _cuda() -> str | None:
    version = _optional(nvml.nvmlSystemGetCudaDriverVersion_v2)
    return None if version is None else f"{version // 1000}.{version % 1000 // 10}"


def _optional(call: Callable[..., Value], *arguments: object) -> Value | None:
    """Ask what not every driver or GPU can tell; only an ailment of the GPU itself is raised."""
    try:
        return call(*arguments)
    except nvml.NVMLError as error:
        if error.value in (nvml.NVML_ERROR_GPU_IS_LOST, nvml.NVML_ERROR_RESET_REQUIRED):
            raise
        return None


def _gpu(handle: Handle, index: int, uuid: str) -> GpuMessage:
    pci_bus_id = _pci_bus_id(handle)
    remapped = _optional(nvml.nvmlDeviceGetRemappedRows, handle)
    mig = _optional(nvml.nvmlDeviceGetMigMode, handle)
    return {
        "index": index,
        "uuid": uuid,
        "name": nvml.nvmlDeviceGetName(handle),
        "memory": _memory(handle),
        "compute_capability": _compute_capability(handle),
        "pci_bus_id": pci_bus_id,
        "numa_node": _numa_node(handle, pci_bus_id),
        "nvlink_peers": [],
        "mig_enabled": None if mig is None else bool(mig[0]),
        "slices": [_slice(piece) for piece in _slices(handle)] if mig and mig[0] else [],
        # Since the last reset: errors of before it were dealt with by it.
        "ecc_uncorrected": _optional(
            nvml.nvmlDeviceGetTotalEccErrors, handle, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
        ),
        "remap_pending": None if remapped is None else bool(remapped[2]),
        "remap_failed": None if remapped is None else bool(remapped[3]),
        "processes": _processes(handle),
    }


def _memory(handle: Handle) -> int:
    """Tell the bytes; 0 for GPUs that share the memory of the CPUs."""
    memory = _optional(nvml.nvmlDeviceGetMemoryInfo, handle)
    return 0 if memory is None else int(memory.total)


def _compute_capability(handle: Handle) -> str | None:
    version = _optional(nvml.nvmlDeviceGetCudaComputeCapability, handle)
    return None if version is None else f"{version[0]}.{version[1]}"


def _pci_bus_id(handle: Handle) -> str | None:
    """Tell the address as the kernel writes it: NVML's has four more digits, and capitals."""
    if (pci := _optional(nvml.nvmlDeviceGetPciInfo_v3, handle)) is None:
        return None
    return _kernel_address(pci)


def _kernel_address(pci: Record) -> str:
    text = pci.busId.decode() if isinstance(pci.busId, bytes) else pci.busId
    domain, rest = text.split(":", 1)
    return f"{int(domain, 16):04x}:{rest.lower()}"


def _numa_node(handle: Handle, pci_bus_id: str | None) -> int | None:
    """Tell the nearest NUMA node that has CPUs.

    Not nvmlDeviceGetNumaNodeId: that is about GPUs whose memory is itself a NUMA node.
    """
    words = _optional(nvml.nvmlDeviceGetMemoryAffinity, handle, NUMA_WORDS, nvml.NVML_AFFINITY_SCOPE_NODE)
    mask: int = sum(word << (64 * place) for place, word in enumerate(words or ()))
    if mask:
        return (mask & -mask).bit_length() - 1
    return sysfs_numa_node(pci_bus_id) if pci_bus_id else None


def _processes(handle: Handle) -> list[ProcessMessage]:
    found = _optional(nvml.nvmlDeviceGetComputeRunningProcesses_v3, handle)
    if found is None:
        found = _optional(nvml.nvmlDeviceGetComputeRunningProcesses_v2, handle)
    return [{"pid": process.pid, "memory": process.usedGpuMemory} for process in found or ()]


def _slices(handle: Handle) -> Iterator[Handle]:
    """Go through the MIG devices; the numbers of those that do not exist are left out."""
    for place in range(_optional(nvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0):
        piece = _optional(nvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, place)
        if piece is not None:
            yield piece


def _slice(piece: Handle) -> SliceMessage:
    return {
        "uuid": nvml.nvmlDeviceGetUUID(piece),
        "name": nvml.nvmlDeviceGetName(piece),
        "memory": _memory(piece),
        "processes": _processes(piece),
    }


def _linked(handle: Handle, gpu: GpuMessage, far: Handle, other: GpuMessage) -> bool:
    """Whether NVLink connects two GPUs, through a switch too."""
    if gpu["uuid"] == other["uuid"]:
        return False
    try:
        status = nvml.nvmlDeviceGetP2PStatus(handle, far, nvml.NVML_P2P_CAPS_INDEX_NVLINK)
    except nvml.NVMLError:
        return other["pci_bus_id"] in set(_far_ends(handle))
    return bool(status == nvml.NVML_P2P_STATUS_OK)


def _far_ends(handle: Handle) -> Iterator[str]:
    """List the PCI addresses at the far ends of the links that are up; a switch is a far end too."""
    for link in range(nvml.NVML_NVLINK_MAX_LINKS):
        with contextlib.suppress(nvml.NVMLError):  # there is no such link, or it is down
            if nvml.nvmlDeviceGetNvLinkState(handle, link) == nvml.NVML_FEATURE_ENABLED:
                yield _kernel_address(nvml.nvmlDeviceGetNvLinkRemotePciInfo(handle, link))


if __name__ == "__main__":
    main()
