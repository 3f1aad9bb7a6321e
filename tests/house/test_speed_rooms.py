"""Code that is there for speed or memory alone says which figure of `make bench` pays for it."""

import ast
import json
import re
from collections.abc import Iterator

import pytest

from bench.__main__ import SECTIONS
from tests.house.generate_stubs import ROOT
from tests.house.speed_rooms import SPEED_MODULES, SPEED_ROOMS

PAYS = re.compile(r'"(?P<figure>[^"]+)" of `make bench ONLY=(?P<section>[a-z]+)` pays for (?:it|this)\b')
MEASURED = {
    (verdict["section"], verdict["bar"]["figure"])
    for verdict in json.loads((ROOT / "docs/performance.json").read_text())["verdicts"].values()
}


def faults(text: str) -> Iterator[str]:
    """What is wrong with how a module says what pays for it."""
    paying = list(PAYS.finditer(" ".join((ast.get_docstring(ast.parse(text)) or "").split())))
    if not paying:
        yield 'the docstring does not say: "FIGURE" of `make bench ONLY=SECTION` pays for this'
    for each in paying:
        section, figure = each["section"], each["figure"]
        if section not in SECTIONS:
            yield f"`make bench` has no section {section}"
        elif (section, figure) not in MEASURED:
            yield f"docs/performance.md has no figure {figure!r} of {section}"


def test_every_module_of_a_room_for_speed_names_a_figure_that_is_measured() -> None:
    modules = [path for room in SPEED_ROOMS for path in sorted((ROOT / room).rglob("*.py")) if path.stem != "__init__"]
    modules += [ROOT / module for module in SPEED_MODULES]
    assert [f"{path.relative_to(ROOT)}: {fault}" for path in modules for fault in faults(path.read_text())] == []
    assert len(modules) > len(SPEED_ROOMS) + len(SPEED_MODULES)


def test_whoever_names_a_benchmark_is_known_as_being_there_for_speed() -> None:
    naming = [
        str(path.relative_to(ROOT))
        for package in ("muster", "coordinator", "agent", "console")
        for path in sorted((ROOT / package).rglob("*.py"))
        if "`make bench" in (ast.get_docstring(ast.parse(path.read_text())) or "")
    ]
    assert [name for name in naming if name not in SPEED_MODULES and not name.startswith(SPEED_ROOMS)] == []


@pytest.mark.parametrize(
    ("docstring", "fault"),
    [
        ("Keeps what was made.", "the docstring does not say"),
        ("Fast: `make bench ONLY=scale` shows it.", "the docstring does not say"),
        ('"agent resident memory, idle" of `make bench ONLY=speed` pays for this.', "no section speed"),
        ('"agent resident memory, idle" of `make bench ONLY=scale` pays for this.', "no figure 'agent resident"),
        ('"wished for" of `make bench ONLY=resident` pays for this.', "no figure 'wished for'"),
    ],
)
def test_what_nothing_pays_for_is_found(docstring: str, fault: str) -> None:
    [found] = faults(f"'''{docstring}'''")
    assert fault in found


def test_a_figure_may_stand_on_two_lines() -> None:
    text = "'''One.\n\n\"agent resident\nmemory, idle\" of\n`make bench ONLY=resident` pays for this.\n'''"
    assert list(faults(text)) == []
