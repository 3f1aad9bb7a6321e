"""Typed identifiers; every other module uses these instead of bare strings."""

from typing import NamedTuple, NewType

JobId = NewType("JobId", str)
"""Given by the coordinator at submit; short, unique, safe in file names and container names."""

NodeId = NewType("NodeId", str)
"""The node's name: unique in a fleet, chosen by the agent (host name by default)."""

ExecutionId = NewType("ExecutionId", str)
"""`<job>-<attempt>-<rank>`: fixed by what it is, so repeating an order can never make a second one."""

GpuUuid = NewType("GpuUuid", str)
"""NVML's UUID (`GPU-…` or `MIG-…`), stable over reboots and re-enumeration."""


class AttemptId(NamedTuple):
    """Which attempt of which job; the first one has number 1."""

    job: JobId
    number: int


def execution_id(job: JobId, attempt: int, rank: int) -> ExecutionId:
    """The only way to make the id of an execution."""
    return ExecutionId(f"{job}-{attempt}-{rank}")
