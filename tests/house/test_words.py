"""Words that have given way to others: one word for a concept, and one concept for a word."""

import re
from collections.abc import Iterator

import pytest

from tests.house.generate_stubs import ROOT

FORMER = "occupants?|holdings|keepers?|ghosts?"
"""Words for LiveExecution, HeldResources, the killer, and executions that are unwanted."""

FORMER_IN_THE_AGENT = f"{FORMER}|rooms?"
"""The same, and the word for the directory of an execution; what a disk has is space."""

KINDS = frozenset({".py", ".md", ".c", ".service", ".proto", ".yml"})

PLACES = (
    *((place, FORMER_IN_THE_AGENT) for place in ("agent", "tests/unit/agent")),
    *(
        (place, FORMER)
        for place in ("muster", "coordinator", "console", "bench", "docs", "deploy", "protos", "ansible")
    ),
    *(
        (f"tests/{tier}", FORMER)
        for tier in ("unit", "contract", "simulation", "integration", "soak", "fuzz", "e2e", "machines")
    ),
)


def has_one_of(words: str, line: str) -> bool:
    """Whether a line has a word, by itself or as a part of a name."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", line)
    return re.search(rf"(?i)(?<![a-z])(?:{words})(?![a-z])", apart) is not None


def found(place: str, words: str) -> Iterator[str]:
    """Lines below a folder that still have one of the words."""
    for path in sorted((ROOT / place).rglob("*")):
        if path.suffix in KINDS:
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if has_one_of(words, line):
                    yield f"{path.relative_to(ROOT)}:{number}: {line.strip()}"


@pytest.mark.parametrize(("place", "words"), PLACES, ids=[place for place, _ in PLACES])
def test_former_words_are_gone(place: str, words: str) -> None:
    assert list(found(place, words)) == []


@pytest.mark.parametrize(
    "line",
    [
        "self._keeper.start()",
        "class Keeper:",
        "occupants = []",
        "# in its room",
        "SecretRooms()",
        "ROOM_RECORD",
        "by ghosts",
    ],
)
def test_a_former_word_would_be_found(line: str) -> None:
    assert has_one_of(FORMER_IN_THE_AGENT, line)


@pytest.mark.parametrize("line", ["bookkeeper", "mushrooms", "holding on", "housekeeping", "Roomy"])
def test_another_word_is_no_former_one(line: str) -> None:
    assert not has_one_of(FORMER_IN_THE_AGENT, line)
