"""What is on disk about one program that was started: who runs it and how it ended, for whatever agent comes next.

One JSON object a line, in the order in which it became known; together they are the record. The first line is written
before user code runs, so an empty file is one of a program that never started. Lines that are damaged count as not
written.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.executions.layout import PROCESS_RECORD
from agent.runtimes.kernel.pids import Process
from agent.runtimes.kernel.subtree import Subtree

UNKNOWN = Process(pid=0, started=0, boot="")
"""The supervisor where the line that named it is damaged. No process has this number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRecord:
    """All that is known of a program."""

    supervisor: Process
    program: Process | None = None
    """The leader of the session of everything that it starts. None if its supervisor was killed just at the start."""
    code: int | None = None
    """How it ended, as Python tells it: minus the signal for what a signal ended."""
    complete: bool = False
    """Whether all that will ever be kept of its output is in the log."""
    alone: bool = False
    """Whether nothing is left of all that it started, in its session and elsewhere."""
    fault: str = ""
    """Why its supervisor gave up, which it never should."""
    user: int | None = None
    """The user as whom only this program runs; None: others may, too."""
    groups: tuple[str, ...] = ()
    """Cgroups of the program."""
    out_of_memory: bool = False
    """Whether the kernel killed anything of it because the memory that it may use was used up."""

    @property
    def damaged(self) -> bool:
        """Whether nobody knows from it who supervises the program."""
        return self.supervisor == UNKNOWN

    def subtree(self, execution: str) -> Subtree:
        """Everything that the program has started."""
        return Subtree(
            supervisor=self.supervisor,
            program=self.program,
            execution=execution,
            user=self.user,
            groups=self.groups,
        )


class RecordFile:
    """The record as a supervisor writes it; raises OSError where that cannot be done."""

    def __init__(self, directory: str) -> None:
        self._path = f"{directory}/{PROCESS_RECORD}"
        self._file = -1

    @contextmanager
    def used(self, supervisor: Process, user: int | None, groups: Sequence[str]) -> Iterator[None]:
        """From here on the program counts as started, unless something raises."""
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            self.add(supervisor=supervisor.facts(), user=user, groups=groups)
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


def read_record(directory: Path) -> ProcessRecord | None:
    """What an execution's directory tells of a program; None where none was started.

    What is damaged is left out: the program that ran must not be forgotten because of it.
    """
    try:
        content = (directory / PROCESS_RECORD).read_bytes()
    except FileNotFoundError:
        return None
    if not content:
        return None
    facts: dict[str, Any] = {}
    for line in content.split(b"\n"):
        facts.update(_sound(line))
    return ProcessRecord(**{"supervisor": UNKNOWN, **facts})


def _sound(line: bytes) -> dict[str, Any]:
    """The facts of a line that this agent knows how to read."""
    try:
        said = json.loads(line)
        return {name: _CHECKED[name](value) for name, value in said.items() if name in _CHECKED}
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return {}


def _process(facts: Mapping[str, Any]) -> Process:
    return Process(pid=_number(facts["pid"]), started=_number(facts["started"]), boot=_text(facts["boot"]))


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _yes(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _texts(value: Any) -> tuple[str, ...]:  # noqa: ANN401 - anything
    return tuple(map(_text, value))


def _user(value: object) -> int | None:
    return None if value is None else _number(value)


_CHECKED: Mapping[str, Callable[[Any], object]] = {
    "supervisor": _process,
    "program": _process,
    "code": _number,
    "complete": _yes,
    "alone": _yes,
    "fault": _text,
    "user": _user,
    "groups": _texts,
    "out_of_memory": _yes,
}
