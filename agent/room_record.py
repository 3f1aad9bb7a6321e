"""What the agent notes in a room about its execution, for an agent that starts after it."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from agent.room_files import READABLE, write_whole
from agent.runtimes.runtime import Room
from muster.domain.roster import PortLease

NAME = "room.json"
"""Of the file in the room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomRecord:
    """Whose room it is and what was told to the coordinator."""

    job: str
    attempt: int
    rank: int
    address: str
    ports: tuple[PortLease, ...] = ()
    started_at: datetime | None = None


def note(room: Room, record: RoomRecord) -> None:
    """Write the record, whole or not at all."""
    facts = {**asdict(record), "started_at": record.started_at and record.started_at.isoformat()}
    write_whole(room.path / NAME, json.dumps(facts).encode(), READABLE)


def note_start(room: Room, at: datetime) -> None:
    """Add to the record when user code was started."""
    record = noted(room)
    if record is not None:
        note(room, replace(record, started_at=at))


def noted(room: Room) -> RoomRecord | None:
    """The record; None where there is none that this agent knows how to read."""
    try:
        facts: Mapping[str, Any] = json.loads((room.path / NAME).read_bytes())
        started_at = facts["started_at"]
        return RoomRecord(
            job=facts["job"],
            attempt=facts["attempt"],
            rank=facts["rank"],
            address=facts["address"],
            ports=tuple(PortLease(**lease) for lease in facts["ports"]),
            started_at=started_at and datetime.fromisoformat(started_at),
        )
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return None
