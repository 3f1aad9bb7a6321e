"""What can be wrong with a job file, as values and as the text that the user reads."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from muster.domain.errors import InvalidJobError
from muster.domain.quoting import quote

_LINE_BREAK = "\r\n|[\r\n\x85\u2028\u2029]"
"""What the YAML reader counts as the end of a line."""

_SHOWN = 50
"""More problems than this are only counted."""
_WIDTH = 100
"""Columns of a source line that are shown."""


class FieldError(InvalidJobError, ValueError):
    """A value that its key or flag cannot take; `str()` is a sentence without a subject."""

    def __init__(self, message: str, *, suggestion: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.suggestion = suggestion

    def __str__(self) -> str:
        return self.message + _hint(self.suggestion)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong, and where."""

    line: int
    """From 1; 0: it does not stand in the file (an override, a value given by a program)."""
    column: int
    """From 1, in characters; 0 with line 0."""
    field: str
    """Dotted path (`roles[0].resources.gpus`); empty: the file as a whole."""
    message: str
    suggestion: str | None = None
    """What was probably meant."""

    def __str__(self) -> str:
        subject = f"{self.field}: " if self.field else ""
        return f"{subject}{self.message}{_hint(self.suggestion)}"


class JobFileError(InvalidJobError):
    """A job file that cannot be accepted; `problems` has all of them, in the order of the file."""

    def __init__(self, source: str, problems: Sequence[Problem], text: str = "") -> None:
        super().__init__(source, problems, text)
        self.source = source
        self.problems = tuple(sorted(problems, key=lambda problem: (problem.line, problem.column)))
        self._lines = lines_of(text)

    def __str__(self) -> str:
        shown = [self._describe(problem) for problem in self.problems[:_SHOWN]]
        more = len(self.problems) - len(shown)
        return "\n".join([*shown, f"{self.source}: {more} more problems"] if more else shown)

    def _describe(self, problem: Problem) -> str:
        if not problem.line:
            return f"{self.source}: {problem}"
        head = f"{self.source}:{problem.line}:{problem.column}: {problem}"
        if problem.line > len(self._lines) or not self._lines[problem.line - 1].strip():
            return head
        return f"{head}\n{_excerpt(self._lines[problem.line - 1], problem.column - 1)}"


def lines_of(text: str) -> list[str]:
    """The lines of a job file, as the YAML reader counts them."""
    return re.split(_LINE_BREAK, text)


def _hint(suggestion: str | None) -> str:
    return "" if suggestion is None else f"; did you mean {quote(suggestion)}?"


def _excerpt(line: str, offset: int) -> str:
    """The line with a caret under `offset`; of a long line, the part around it."""
    visible = "".join(character if character.isprintable() else " " for character in line)
    start = max(0, offset - _WIDTH // 2) if len(visible) > _WIDTH else 0
    lead = "…" if start else ""
    tail = "…" if start + _WIDTH < len(visible) else ""
    caret = " " * (len(lead) + offset - start) + "^"
    return f"    {lead}{visible[start : start + _WIDTH]}{tail}".rstrip() + f"\n    {caret}"
