"""A pattern or limit of a job stands in the rule book alone; other doors import it, so that all agree."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.house.generate_stubs import ROOT

PACKAGES = ("muster", "coordinator", "agent", "console")
JOBS = ROOT / "muster" / "domain" / "jobs"
DOORS = ("muster/jobfile", "muster/wire")
"""Folders through which jobs come; what they refuse is what the rule book refuses."""

BOUNDS = frozenset({"ge", "gt", "le", "lt", "min_length", "max_length", "multiple_of", "pattern"})
"""Keywords with which pydantic limits a value."""

LIMITED = frozenset({"between", "within", "at_most"})
"""Functions of the doors that take bounds as arguments."""

OF_THE_WIRE = frozenset({"_MAX_REVISION", "MAX_BYTES", "MOST_FEATURES"})
"""Bounds of messages, which no job has: numbers of plans, what a database can keep, features of an agent."""

PLAIN = frozenset({0, 1})
"""Bounds that need no name: none, and at least one."""


def patterns(folder: Path = JOBS) -> dict[str, str]:
    """Each pattern that a module of the jobs' vocabulary names, with that name."""
    return {
        node.value.value: f"{path.stem}.{node.targets[0].id}"
        for path in sorted(folder.glob("*.py"))
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        if "[" in node.value.value
    }


def repeated(text: str, known: Mapping[str, str]) -> list[str]:
    """Patterns of the rule book that a module writes down as well, as `LINE: NAME`."""
    return [
        f"{node.lineno}: {known[node.value]}"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in known
    ]


def _numbers(tree: ast.Module) -> frozenset[str]:
    """Constants of a module that are numbers of its own."""
    return frozenset(
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant | ast.BinOp)
        for target in node.targets
        if isinstance(target, ast.Name)
    )


def own_bounds(text: str) -> Iterator[str]:
    """Bounds of values that a door sets by itself, as `LINE: BOUND`."""
    tree = ast.parse(text)
    own = _numbers(tree)
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        given = [each.value for each in call.keywords if each.arg in BOUNDS]
        given += call.args if name in LIMITED else []
        for each in given:
            is_literal = isinstance(each, ast.Constant) and type(each.value) in {int, float} and each.value not in PLAIN
            is_own = isinstance(each, ast.Name) and each.id in own - OF_THE_WIRE
            if is_literal or is_own:
                yield f"{call.lineno}: {ast.unparse(each)}"


def test_no_pattern_of_a_job_is_written_down_twice() -> None:
    known = patterns()
    wrong = [
        f"{path.relative_to(ROOT)}:{each}"
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        if path.parent != JOBS
        for each in repeated(path.read_text(), known)
    ]

    assert known
    assert wrong == []


def test_no_two_modules_of_the_vocabulary_have_one_pattern() -> None:
    found = [each for path in sorted(JOBS.glob("*.py")) for each in repeated(path.read_text(), patterns())]

    assert sorted(each.partition(": ")[2] for each in found) == sorted(patterns().values())


def test_the_doors_set_no_bounds_by_themselves() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{each}"
        for folder in DOORS
        for path in sorted((ROOT / folder).rglob("*.py"))
        for each in own_bounds(path.read_text())
    ]

    assert wrong == []


def test_a_repeated_pattern_is_found() -> None:
    assert repeated('import re\nA = re.compile(r"[a-z]{3}")\n', {"[a-z]{3}": "job_values.A"}) == ["2: job_values.A"]


@pytest.mark.parametrize(
    ("planted", "found"),
    [
        ("a = Field(max_length=63)", ["1: 63"]),
        ("a = Field(ge=1, le=1000)", ["1: 1000"]),
        ("a = fields.within(0, 64)", ["1: 64"]),
        ("MOST = 255\na = checks.between(code, 0, MOST, 'code')", ["2: MOST"]),
        ("a = checks.between(rank, 0, MAX_EXECUTIONS, 'rank')", []),
    ],
)
def test_a_bound_that_a_door_sets_is_found(planted: str, found: list[str]) -> None:
    assert list(own_bounds(planted)) == found
