"""Where outputs of an execution lie on its node."""

from dataclasses import dataclass
from pathlib import Path

LIVE_FILES_NOTE = "live-files.json"
"""File in an execution's directory that lists what is stored of its outputs while user code runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputsPlace:
    """Where outputs of an execution lie, and whose they are."""

    directory: Path
    owner: int | None
    """The user whose files count; None: those of anybody count, as in a container."""
    note: Path | None = None
    """The directory in which it is noted what is stored of them already; None: that is noted nowhere."""

    @property
    def has_note(self) -> bool:
        """Whether something of them is stored already."""
        return self.note is not None and (self.note / LIVE_FILES_NOTE).exists()
