"""Rules for every sentence in the code: it is read alone, in an editor, by somebody who does not know the body."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.generate_stubs import ROOT

PACKAGES = ("muster", "coordinator", "agent", "console", "tests", "bench", "examples")

OPENINGS = re.compile(
    r"\W*(?:of|by|as|for|on|with|in|to|at|those|that|whom|whose|who|it|they|them|its|their|he|she)\b", re.IGNORECASE
)
"""First words that mean nothing without the name or the body below them."""

PERSONS = re.compile(r"\b(?:he|him|his|himself)\b", re.IGNORECASE)
"""Words for one half of the people whom a sentence means."""


def _sources() -> Iterator[Path]:
    for package in PACKAGES:
        yield from (path for path in sorted((ROOT / package).rglob("*.py")) if "_pb2" not in path.name)


def _sentences(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of each docstring, of attributes and constants, too."""
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for before, each in zip([node if documented else None, *body], body, strict=False):
            explains = before is node or isinstance(before, ast.Assign | ast.AnnAssign)
            match each:
                case ast.Expr(value=ast.Constant(value=str() as text)) if before is not None and explains:
                    yield each.lineno, text


def faults(source: str) -> list[str]:
    """Sentences that cannot be read alone, or that leave somebody out."""
    found = []
    for line, text in _sentences(source):
        if OPENINGS.match(text):
            found.append(f"{line}: begins with a word that needs what comes after it: {text.splitlines()[0]}")
        if person := PERSONS.search(text):
            found.append(f"{line}: says {person.group()!r}: {text.splitlines()[0]}")
    return found


def test_every_sentence_can_be_read_alone() -> None:
    assert [f"{path.relative_to(ROOT)}:{fault}" for path in _sources() for fault in faults(path.read_text())] == []


@pytest.mark.parametrize(
    "source",
    [
        '"""Of one node."""',
        'class Deadline:\n    """As the job names it."""',
        'class Deadline:\n    at: float\n    """By the clock of the node."""',
        'async def login() -> None:\n    """Who has confirmed."""',
        'LIMIT = 3\n"""The caller, and what he may do."""',
        'def close() -> None:\n    """It ends."""',
    ],
)
def test_a_sentence_that_needs_its_body_would_be_found(source: str) -> None:
    assert len(faults(source)) == 1


@pytest.mark.parametrize(
    "source", ['"""One node\'s deadline."""', 'text = ""\n"""The offer of a node, as it is now."""']
)
def test_a_sentence_with_its_subject_passes(source: str) -> None:
    assert faults(source) == []
