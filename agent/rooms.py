"""Makes and clears the directories of executions."""

import shutil
from contextlib import suppress
from pathlib import Path

from agent.room_record import RoomRecord, note
from agent.runtimes.runtime import Room


def make_room(room: Room, record: RoomRecord) -> None:
    """Make the directories that every execution has, and note whose they are."""
    for directory in (room.config, room.work, room.outputs):
        directory.mkdir(parents=True, exist_ok=True)
    note(room, record)


def clear_room(room: Room, outputs: Path) -> None:
    """Remove the room, but keep what user code left in its outputs, below `outputs`."""
    with suppress(OSError):
        room.outputs.rmdir()
    if room.outputs.exists():
        outputs.mkdir(mode=0o700, parents=True, exist_ok=True)
        outputs.chmod(0o700)  # what jobs have left is not for the jobs that come after them
        shutil.move(room.outputs, outputs / room.path.name)
    shutil.rmtree(room.path, ignore_errors=True)
