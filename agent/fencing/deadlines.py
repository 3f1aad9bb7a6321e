"""The file of deadlines in an agent's state directory, and the word on disk that an execution ended because of one."""

from contextlib import suppress
from pathlib import Path

from agent.core.deadlines import Notes, read, written
from agent.executions.layout import FENCED
from agent.executions.whole_file import write_unseen, write_whole

DEADLINES_FILE = "deadlines.json"

PRIVATE_NOTES = 0o600

ATOMIC_BYTES = 4096
"""Bytes at the head of a file that are written by one call whole or not at all, also if the writer is killed."""


def write_notes(state: Path, notes: Notes) -> None:
    """Have these notes in place of those of before. Raises OSError where that cannot be done.

    They change at every start and end. So they are written over those of before, which neither makes a file nor frees
    one, and can be done on a full disk; where they are long, only on a full disk. Nothing is flushed: nothing that runs
    outlives the page cache.
    """
    path, content = state / DEADLINES_FILE, written(notes)
    if len(content) <= ATOMIC_BYTES and path.exists():
        write_unseen(path, content, PRIVATE_NOTES)
        return
    try:
        write_whole(path, content, PRIVATE_NOTES)
    except OSError:
        write_unseen(path, content, PRIVATE_NOTES)


def read_notes(state: Path) -> Notes | None:
    """The notes; None where there are none. Raises ValueError for what is torn."""
    try:
        return read((state / DEADLINES_FILE).read_bytes())
    except FileNotFoundError:
        return None


def mark_fenced(directory: Path, message: str) -> None:
    """Leave word why it is killed, unless somebody did; what cannot be written is not worth more."""
    with suppress(OSError), (directory / FENCED).open("x", encoding="utf-8") as file:
        file.write(message)


def why_fenced(directory: Path) -> str:
    """Why it was killed; empty: it was not."""
    try:
        return (directory / FENCED).read_text(
            encoding="utf-8"
        ) or "stopped by its agent, which had lost the coordinator"
    except OSError:
        return ""
