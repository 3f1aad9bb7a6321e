"""What departs from a rule says why: checks that are switched off, imports inside functions, grips into libraries."""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.house.generate_stubs import ROOT
from tests.house.speed_rooms import SPEED_ROOMS

PACKAGES = ("muster", "coordinator", "agent", "console")
NOQA = re.compile(r"#\s*noqa\b(?P<codes>:\s*[A-Z]+[0-9]+(?:,\s*[A-Z]+[0-9]+)*)?(?P<rest>.*)$")
IGNORED = re.compile(r"#\s*(?:type:\s*ignore|pragma:\s*no cover)(?:\[[a-z-]+(?:,\s*[a-z-]+)*\])?(?P<rest>.*)$")
REASON = re.compile(r"\s*(?:-|\(|#)\s*[A-Za-z`0-9]")
"""How a reason begins after what it is for."""

LOADS_LATER = ("muster/cli/", "muster/client/client.py", "muster/client/sync/client.py")
"""Where imports inside functions need no reason each: pyproject.toml has that of them all."""


Finder: TypeAlias = Callable[[str], Iterator[str]]
"""Tells faults in the text of a module."""


def _sources(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from (path for path in sorted((ROOT / folder).rglob("*.py")) if "_pb2" not in path.name)


def _faults(folders: tuple[str, ...], find: Finder, but: tuple[str, ...] = ()) -> list[str]:
    paths = ((path, str(path.relative_to(ROOT))) for path in _sources(*folders))
    return [
        f"{name}:{fault}"
        for path, name in paths
        if not name.startswith(but or ("-",))
        for fault in find(path.read_text())
    ]


def unexplained_noqa(text: str) -> Iterator[str]:
    """Lines on which ruff is told to keep quiet, without codes or without a reason."""
    for number, line in enumerate(text.splitlines(), 1):
        if (found := NOQA.search(line)) and not (found["codes"] and REASON.match(found["rest"])):
            yield f"{number}: {found[0]}"


def unexplained_ignores(text: str) -> Iterator[str]:
    """Lines on which mypy or the coverage is told to keep quiet, without a reason."""
    for number, line in enumerate(text.splitlines(), 1):
        if (found := IGNORED.search(line)) and not REASON.match(found["rest"]):
            yield f"{number}: {found[0]}"


def imports_in_functions(text: str) -> Iterator[str]:
    """Imports inside functions whose line does not say what they spare."""
    lines = text.splitlines()
    functions = [
        each for each in ast.walk(ast.parse(text)) if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    inside = {each for function in functions for each in ast.walk(function)}
    for each in inside:
        if isinstance(each, (ast.Import, ast.ImportFrom)):
            found = NOQA.search(lines[each.end_lineno - 1] if each.end_lineno else "") or NOQA.search(
                lines[each.lineno - 1]
            )
            if found is None or "PLC0415" not in found[0] or not REASON.match(found["rest"]):
                yield f"{each.lineno}: {ast.unparse(each)}"


def grips(text: str) -> Iterator[str]:
    """Changes of `sys.modules` and of what other libraries have, as `LINE: WHAT`."""
    tree = ast.parse(text)
    foreign = set(_foreign_names(tree))
    for each in ast.walk(tree):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id in {"setattr", "delattr"}:
            changed: list[ast.expr] = [ast.Attribute(each.args[0], "…")]
        else:
            changed = list(_changed(each))
        for target in changed:
            root = _root(target)
            is_modules = root == "sys" and ast.unparse(target).startswith("sys.modules")
            if is_modules or (root in foreign and root != "sys"):
                yield f"{each.lineno}: {ast.unparse(each)}"  # type: ignore[attr-defined]  # statements and calls have lines


def _foreign_names(tree: ast.Module) -> Iterator[str]:
    """Names under which a module knows other libraries and what is in them."""
    for each in ast.walk(tree):
        if isinstance(each, ast.Import):
            yield from ((name.asname or name.name).split(".")[0] for name in each.names if not _is_ours(name.name))
        elif isinstance(each, ast.ImportFrom) and each.module and not _is_ours(each.module):
            yield from (name.asname or name.name for name in each.names)


def _is_ours(module: str) -> bool:
    return module.split(".", maxsplit=1)[0] in PACKAGES


def _changed(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, (ast.Assign, ast.Delete)):
        yield from (each for each in node.targets if isinstance(each, (ast.Attribute, ast.Subscript)))
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign)) and isinstance(node.target, (ast.Attribute, ast.Subscript)):
        yield node.target


def _root(target: ast.expr) -> str | None:
    while isinstance(target, (ast.Attribute, ast.Subscript)):
        target = target.value
    return target.id if isinstance(target, ast.Name) else None


def test_every_noqa_has_its_reason() -> None:
    assert _faults((*PACKAGES, "bench", "tests", "packages"), unexplained_noqa, ("tests/house/test_exceptions",)) == []


def test_every_ignored_type_has_its_reason() -> None:
    assert (
        _faults((*PACKAGES, "bench", "tests", "packages"), unexplained_ignores, ("tests/house/test_exceptions",)) == []
    )


def test_every_import_inside_a_function_says_what_it_spares() -> None:
    assert _faults(PACKAGES, imports_in_functions, LOADS_LATER) == []


def test_nobody_changes_other_libraries_outside_the_rooms_for_that() -> None:
    assert _faults(PACKAGES, grips, SPEED_ROOMS) == []


@pytest.mark.parametrize(
    ("find", "text"),
    [
        (unexplained_noqa, "import x  # noqa: F401"),
        (unexplained_noqa, "import x  # noqa"),
        (unexplained_noqa, "import x  # noqa - because"),
        (unexplained_ignores, "x = y  # type: ignore[arg-type]"),
        (unexplained_ignores, "x = y  # pragma: no cover"),
        (imports_in_functions, "def f():\n    import json"),
        (imports_in_functions, "async def f():\n    from a import b  # noqa: PLC0415"),
        (grips, "import sys\nsys.modules['ssl'] = None"),
        (grips, "import sys\ndel sys.modules['ssl']"),
        (grips, "import grpc\ngrpc.aio.x = 1"),
        (grips, "from grpc import aio\naio.options['x'] += 1"),
        (grips, "import grpc\nsetattr(grpc.aio, 'x', 1)"),
    ],
)
def test_planted_violations_are_found(find: Finder, text: str) -> None:
    assert len(list(find(text))) == 1


@pytest.mark.parametrize(
    ("find", "text"),
    [
        (unexplained_noqa, "import x  # noqa: F401 - its plugin is loaded with it"),
        (unexplained_noqa, "def f(a, b):  # noqa: ARG001, ANN401 (as grpc calls it)"),
        (unexplained_ignores, "x = y  # type: ignore[arg-type]  # a builder takes any field"),
        (imports_in_functions, "import json\ndef f():\n    from a import b  # noqa: PLC0415 - seldom"),
        (grips, "import sys\nsys.stdin = open('x')"),
        (grips, "from muster import errors\nerrors.x = 1\nself.y = 2"),
    ],
)
def test_what_keeps_to_the_rules_is_left_alone(find: Finder, text: str) -> None:
    assert list(find(text)) == []
