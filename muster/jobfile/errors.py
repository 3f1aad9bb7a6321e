"""What can be wrong with a job file, as values and as the text that the user reads.

The parser of YAML reports where it gave up, in its own terms: a quote that is never closed, at the end of the file.
`fault_of` gives the sentence that a person can act on, and the place where the fault begins.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from muster.domain.errors import InvalidJobError
from muster.domain.quoting import quote

if TYPE_CHECKING:
    from ruamel.yaml.error import MarkedYAMLError, StringMark

_LINE_BREAK = "\r\n|[\r\n\x85\u2028\u2029]"
"""What the YAML reader counts as the end of a line."""

Spot: TypeAlias = tuple[int, int]
"""Line and column, from 0."""

_NO_YAML = "is not valid YAML"
_BRACKETS = {"while parsing a flow sequence": ("list", "[", "]"), "while parsing a flow mapping": ("map", "{", "}")}
_START = re.compile(r"found character '(.)' that cannot start any token")
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


def fault_of(error: "MarkedYAMLError", lines: Sequence[str]) -> tuple[str, Spot | None]:
    """A sentence without its subject, and where the fault begins; None: nobody knows."""
    problem = str(error.problem or error.context or "").strip().split("\n", maxsplit=1)[0]
    here, began = _spot(error.problem_mark), _spot(error.context_mark)
    if began is not None and (told := _left_open(problem, error.context or "")):
        return f"{_NO_YAML}: {told}", began
    line, column = ("", 0) if here is None or here[0] >= len(lines) else (lines[here[0]], here[1])
    return f"{_NO_YAML}: {_in_line(problem, line, column) or problem}", here or began


def _left_open(problem: str, context: str) -> str | None:
    """What is wrong with something that begins earlier than the parser gave up."""
    if "'\\t'" in problem:
        return None
    if problem == "found unexpected end of stream":
        return "the quote that begins here is never closed"
    if context in _BRACKETS:
        what, opens, closes = _BRACKETS[context]
        return f"the {what} that begins here with {opens} lacks a comma or its {closes}"
    return "after this key there is no colon" if problem == "could not find expected ':'" else None


def _in_line(problem: str, line: str, column: int) -> str | None:
    """What a fault within one line comes from."""
    if "'\\t'" in problem:
        return "a tab stands where only spaces may"
    if start := _START.fullmatch(problem):
        return f"a text that begins with {start[1]} must stand in quotes"
    if problem == "mapping values are not allowed here":
        return _second_colon(line, column)
    if not problem.startswith("expected <block end>, but found"):
        return None
    if "'<scalar>'" in problem:
        return "there is more text after a closing quote; put all of the value in quotes"
    return "this line begins in no column in which a line above it begins; align it with the keys of its map"


def _spot(mark: "StringMark | None") -> Spot | None:
    return None if mark is None else (mark.line, mark.column)


def _second_colon(line: str, column: int) -> str:
    key, colon, value = line[:column].partition(": ")
    if colon and key.strip():
        return f'a text with ": " in it must stand in quotes: {quote((value + line[column:]).strip())}'
    return "this line is indented further than the one above it, whose key has a value already"
