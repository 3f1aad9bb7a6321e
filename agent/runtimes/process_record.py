"""What is on disk about one program that was started: who runs it and how it ended, for whatever agent comes next.

One JSON object a line, in the order in which it became known; together they are the record. The first line is written
before user code runs, so a program without one never started. A last line that is torn counts as not written.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from agent.runtimes.pids import Process

NAME = "process.json"
"""Of the file in the room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRecord:
    """All that is known of a program."""

    supervisor: Process
    program: Process
    """It leads the session of everything that it starts."""
    code: int | None = None
    """How it ended, as Python tells it: minus the signal for what a signal ended."""
    complete: bool = False
    """Whether all that will ever be kept of its output is in the log."""
    fault: str = ""
    """Why its supervisor gave up, which it never should."""


class RecordFile:
    """The record as supervisor and program write it. It has its name only from the start of the program on.

    Everything here raises OSError where the disk does not do its part.
    """

    def __init__(self, room: Path, supervisor: Process) -> None:
        self.supervisor = supervisor
        self._used = room / NAME
        self._unused = room / f".{NAME}.{supervisor.pid}"
        self._unused.touch()

    def name(self, program: Process) -> None:
        """Write the first line, so that there is little to do at the start."""
        facts = {"supervisor": asdict(self.supervisor), "program": asdict(program)}
        self._unused.write_bytes(json.dumps(facts).encode() + b"\n")

    @contextmanager
    def used(self) -> Iterator[None]:
        """From here on the program counts as started, unless something raises."""
        self._unused.rename(self._used)
        try:
            yield
        except BaseException:
            self._used.rename(self._unused)
            raise

    def clear(self) -> bool:
        """Whether the program never started; then nothing is left of the record."""
        try:
            self._unused.unlink()
        except FileNotFoundError:
            return False
        return True

    def add(self, **facts: object) -> None:
        """Write down what has become known of a program that was started."""
        record = os.open(self._used, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            os.write(record, json.dumps(facts).encode() + b"\n")
        finally:
            os.close(record)


def read_record(room: Path) -> ProcessRecord | None:
    """What the room has of a program; None where none was started, or none that this agent knows how to read."""
    facts: dict[str, object] = {}
    try:
        for line in (room / NAME).read_bytes().split(b"\n")[:-1]:
            facts.update(json.loads(line))
        supervisor, program = Process(**facts.pop("supervisor")), Process(**facts.pop("program"))  # type: ignore[arg-type]
        return ProcessRecord(supervisor=supervisor, program=program, **facts)  # type: ignore[arg-type]
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return None
