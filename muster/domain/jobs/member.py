"""One execution of an attempt, as its peers see it; all of them are the roster: `roster`."""

from dataclasses import dataclass
from datetime import datetime

from muster.domain.ids import ExecutionId, GpuUuid, NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class PortLease:
    """A port of an execution, held from check-in until just before user code starts."""

    name: str
    host_port: int
    """Where peers reach it, at the execution's address."""
    container_port: int
    """Where user code listens; differs from `host_port` only on bridge networking."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One execution of the attempt, as its peers see it."""

    rank: int
    execution: ExecutionId
    role: str
    node: NodeId
    address: str
    checked_in_at: datetime
    ports: tuple[PortLease, ...] = ()
    gpus: tuple[GpuUuid, ...] = ()
    peer_port: int = 0
    """Where other agents reach the agent of its node, at its address; 0: they cannot."""
