"""Rules for every module of the three packages: what it may be called, how long it is, what it leaves open."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.house.generate_stubs import ROOT

PACKAGES = ("muster", "coordinator", "agent", "console")
BUDGET = 400
"""Lines. A module that needs more holds two decisions."""

DRAWERS = frozenset({"utils", "util", "helpers", "helper", "common", "misc", "base", "manager", "managers"})
"""Names under which anything could be kept; if a function has no home, a concept is missing."""

SYNONYMS = re.compile(
    r"(?i)(task(?!group)|workload|workflow|pod(?!man)|machine(?!Plan|Facts|Inventory|Request)|replica|barrier)"
)
"""Other words for Job, Execution, Node and Release; ARCHITECTURE.md has the glossary.

A machine is what is not a node yet, so the values of its installation may be called after it.
"""


def _modules() -> Iterator[Path]:
    for package in PACKAGES:
        yield from (path for path in sorted((ROOT / package).rglob("*.py")) if "_pb2" not in path.name)


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _own_name(path: Path) -> str:
    """What a module or, in its `__init__`, a folder is called."""
    return path.parent.name if path.stem == "__init__" else path.stem


def _sources() -> Iterator[Path]:
    yield from _modules()
    for directory in ("bench", "examples", "tests"):
        yield from (ROOT / directory).rglob("*.py")
    yield from (ROOT / "protos").rglob("*.proto")


def test_the_rules_see_all_three_packages() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in _modules()} == set(PACKAGES)


def test_no_module_is_a_drawer() -> None:
    assert [_name(path) for path in _modules() if {path.stem, path.parent.name} & DRAWERS] == []


def test_modules_keep_to_their_budget() -> None:
    modules = (path for path in _sources() if path.suffix == ".py")
    lengths = {_name(path): len(path.read_text().splitlines()) for path in modules}
    assert {name: length for name, length in lengths.items() if length > BUDGET} == {}


def test_classes_and_functions_use_the_house_words() -> None:
    assert [f"{_name(path)}: {name}" for path in _modules() for name in _defined(path) if SYNONYMS.search(name)] == []


def test_modules_use_the_house_words() -> None:
    assert [_name(path) for path in _modules() if SYNONYMS.search(_own_name(path))] == []


def test_a_synonym_would_be_found() -> None:
    assert SYNONYMS.search(_own_name(Path("agent/machine.py")))
    assert SYNONYMS.search(_own_name(Path("agent/workloads/__init__.py")))
    assert not SYNONYMS.search(_own_name(Path("agent/inventory/hardware.py")))
    assert SYNONYMS.search("WorkloadQueue")
    assert SYNONYMS.search("MachineQueue")
    assert not SYNONYMS.search("MachinePlan")
    assert SYNONYMS.search("stop_task")
    assert not SYNONYMS.search("stop_execution")


def test_no_test_is_built_on_another() -> None:
    """What several tests need has a module of its own, which says what it is."""
    tests = sorted((ROOT / "tests").rglob("test_*.py"))
    assert [
        _name(path) for path in tests if re.search(r"^from [\w.]+\.test_\w+ import", path.read_text(), re.MULTILINE)
    ] == []


def test_what_is_left_to_do_has_an_issue() -> None:
    mark = "TO" + "DO"
    open_ends = [
        f"{_name(path)}: {line.strip()}"
        for path in _sources()
        for line in path.read_text().splitlines()
        if re.search(rf"\b({mark}|FIX{'ME'}|XX{'X'})\b(?!\(#\d+\))", line)
    ]
    assert open_ends == []


def _defined(path: Path) -> Iterator[str]:
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    yield from (node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kinds))
