"""Records as JSON and back, exactly.

A field that is new in the program and has a default needs no migration: bodies written before it get the default.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ConfigDict, TypeAdapter

from coordinator.core.checkpoint_part import CheckpointPart
from coordinator.core.quota_meter import QuotaMeter
from coordinator.core.records import Attempt, Execution, Job, Node, Record
from muster.domain.event import FleetEvent, JobEvent, NodeEvent, StoryEvent
from muster.domain.fleet.access import Project
from muster.domain.fleet.pool import Pool
from muster.domain.fleet.quota import Department
from muster.domain.fleet.window import Window

RecordT = TypeVar(
    "RecordT",
    Job,
    Attempt,
    Execution,
    CheckpointPart,
    Node,
    Project,
    Department,
    JobEvent,
    NodeEvent,
    FleetEvent,
    Window,
    Pool,
    QuotaMeter,
)


def encode(record: Record | JobEvent | StoryEvent) -> str:
    """The whole record as a JSON object."""
    return _ADAPTERS[type(record)].dump_json(record).decode()


def decode(kind: type[RecordT], body: str) -> RecordT:
    """The record that `encode` was given; raises ValueError for a body that is no such record."""
    record = _ADAPTERS[kind].validate_json(body)
    if not isinstance(record, kind):
        raise ValueError(f"the body holds no {kind.__name__.lower()}")  # noqa: TRY004 - it is the value that is wrong
    return record


# File contents are any bytes, so base64. pydantic takes a configuration for an optional dataclass, not for a bare one,
# and hands it on to the dataclasses inside.
_CONFIG = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

_ADAPTERS: Mapping[type[Record | JobEvent | StoryEvent], TypeAdapter[Any]] = {
    Job: TypeAdapter(Job | None, config=_CONFIG),
    Attempt: TypeAdapter(Attempt | None, config=_CONFIG),
    Execution: TypeAdapter(Execution | None, config=_CONFIG),
    CheckpointPart: TypeAdapter(CheckpointPart | None, config=_CONFIG),
    Node: TypeAdapter(Node | None, config=_CONFIG),
    JobEvent: TypeAdapter(JobEvent | None, config=_CONFIG),
    NodeEvent: TypeAdapter(NodeEvent | None, config=_CONFIG),
    FleetEvent: TypeAdapter(FleetEvent | None, config=_CONFIG),
    Project: TypeAdapter(Project | None, config=_CONFIG),
    Department: TypeAdapter(Department | None, config=_CONFIG),
    Window: TypeAdapter(Window | None, config=_CONFIG),
    Pool: TypeAdapter(Pool | None, config=_CONFIG),
    QuotaMeter: TypeAdapter(QuotaMeter | None, config=_CONFIG),
}
