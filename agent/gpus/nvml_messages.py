"""What the NVML process tells the agent: one JSON object per line; `kind` says which of these it is.

Imports nothing but typing, because the NVML process is to stay small.
"""

from typing import Literal, TypedDict


class ProcessMessage(TypedDict):
    """A process with a compute context."""

    pid: int
    memory: int | None


class SliceMessage(TypedDict):
    """One MIG device."""

    uuid: str
    name: str
    memory: int
    processes: list[ProcessMessage]


class GpuMessage(TypedDict):
    """One physical GPU that answers; None where the driver does not say."""

    index: int
    uuid: str
    name: str
    memory: int
    compute_capability: str | None
    pci_bus_id: str | None
    numa_node: int | None
    nvlink_peers: list[str]
    mig_enabled: bool | None
    slices: list[SliceMessage]
    ecc_uncorrected: int | None
    remap_pending: bool | None
    remap_failed: bool | None
    processes: list[ProcessMessage]


class FailedGpuMessage(TypedDict):
    """One GPU that does not answer; its UUID where it still told that."""

    index: int
    uuid: str | None
    problem: str


class ReadingMessage(TypedDict):
    """The answer to a request."""

    kind: Literal["reading"]
    driver: str | None
    cuda: str | None
    gpus: list[GpuMessage]
    failed: list[FailedGpuMessage]


class ProblemMessage(TypedDict):
    """The other answer: nothing could be read. The process ends after it."""

    kind: Literal["problem"]
    problem: str


class FaultMessage(TypedDict):
    """The driver reported an Xid; comes unasked."""

    kind: Literal["fault"]
    uuid: str
    xid: int


class CaughtUpMessage(TypedDict):
    """The answer to the request for faults: those that had come were told before it."""

    kind: Literal["caught up"]


class GpuUseMessage(TypedDict):
    """What is seen of one GPU; None where the driver does not say."""

    percent: int | None
    """The time in which something ran on it."""
    memory: int | None
    """Bytes that are held."""
    milliwatts: int | None
    celsius: int | None
    clock_mhz: int | None
    throttled: bool


class UseMessage(TypedDict):
    """The answer to the request for use: what is seen of each GPU that answers, by UUID."""

    kind: Literal["use"]
    gpus: dict[str, GpuUseMessage]


class ProcessesMessage(TypedDict):
    """The answer to the request for processes: those of each GPU that answers, by UUID."""

    kind: Literal["processes"]
    gpus: dict[str, list[ProcessMessage]]


READ = b"read"
CATCH_UP = b"catch up"
USE = b"use"
PROCESSES = b"processes"
"""The requests, each a line."""

Answer = ReadingMessage | ProblemMessage
Message = ReadingMessage | ProblemMessage | FaultMessage | CaughtUpMessage | UseMessage | ProcessesMessage
