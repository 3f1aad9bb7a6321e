"""What passes between agents and the coordinator beside plans and reports, as `agents.proto` has it."""

from dataclasses import dataclass

from muster.domain.fleet.node import Inventory
from muster.domain.gangs.plan import Report
from muster.domain.ids import ExecutionId


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """The first message of an agent: the whole truth."""

    identity: str
    address: str
    inventory: Inventory
    reports: tuple[Report, ...]
    opened: int
    peer_port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Welcome:
    """The coordinator takes the agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """The agent is alive and has applied plans up to a revision."""

    sequence: int
    plan_revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatAck:
    """The coordinator has taken a heartbeat in."""

    sequence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reports:
    """News of several executions."""

    reports: tuple[Report, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogChunk:
    """A piece of a log; only its length matters here."""

    execution: ExecutionId
    offset: int
    length: int
    last: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LogAck:
    """How much of a log the coordinator has."""

    execution: ExecutionId
    offset: int = 0
    complete: bool = False
    unwanted: bool = False
