"""What is on disk about one program that was started: who runs it and how it ended, for whatever agent comes next.

One JSON object a line, in the order in which it became known; together they are the record. The first line is written
before user code runs, so a program without one never started. A last line that is torn counts as not written.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.runtimes.pids import Process

NAME = "process.json"
"""Of the file in the room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRecord:
    """All that is known of a program."""

    supervisor: Process
    program: Process | None = None
    """It leads the session of everything that it starts. None if its supervisor was killed just at the start."""
    code: int | None = None
    """How it ended, as Python tells it: minus the signal for what a signal ended."""
    complete: bool = False
    """Whether all that will ever be kept of its output is in the log."""
    alone: bool = False
    """Whether nothing is left of all that it started, in its session and elsewhere."""
    fault: str = ""
    """Why its supervisor gave up, which it never should."""


class RecordFile:
    """The record as a supervisor writes it; raises OSError where that cannot be done."""

    def __init__(self, room: str) -> None:
        self._path = f"{room}/{NAME}"
        self._file = -1

    @contextmanager
    def used(self, supervisor: Process) -> Iterator[None]:
        """From here on the program counts as started, unless something raises."""
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            self.add(supervisor=supervisor.facts())
            yield
        except BaseException:
            os.unlink(self._path)  # noqa: PTH108 (a path object costs more than all else here)
            raise

    def add(self, **facts: object) -> None:
        """Write down what has become known."""
        os.write(self._file, json.dumps(facts).encode() + b"\n")

    def close(self) -> None:
        """Let go of the file; harmless when it was never used."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def read_record(room: Path) -> ProcessRecord | None:
    """What the room has of a program; None where none was started, or none that this agent knows how to read."""
    facts: dict[str, Any] = {}
    try:
        for line in (room / NAME).read_bytes().split(b"\n")[:-1]:
            facts.update(json.loads(line))
        facts.update({name: Process(**facts[name]) for name in ("supervisor", "program") if name in facts})
        return ProcessRecord(**facts)
    except (FileNotFoundError, ValueError, TypeError, RecursionError):
        return None
