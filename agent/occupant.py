"""What the loop holds of one execution."""

from dataclasses import dataclass

from agent.room_record import RoomRecord
from agent.runtimes.runtime import Room, Sandbox
from agent.spool import LogSpool
from muster.domain.job import RuntimeKind


@dataclass(slots=True)
class Occupant:
    """One execution in the loop."""

    kind: RuntimeKind
    room: Room
    spool: LogSpool
    sandbox: Sandbox | None = None
    started: bool = False
    """Whether user code may run in it."""
    record: RoomRecord | None = None
    """What was noted in its room; None: an earlier agent did that."""
