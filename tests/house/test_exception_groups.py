"""What an `except*` may do."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    path
    for each in ("agent", "bench", "console", "coordinator", "muster", "tests")
    for path in (ROOT / each).rglob("*.py")
)


def raised_in_groups(source: str) -> list[int]:
    """The lines on which something is raised inside an `except*`: before Python 3.11.4 it comes out in a group.

    Whoever waits for the error itself then does not catch it. So `sys.exit` does not end the program with its message.
    """
    if "except*" not in source:
        return []
    handlers = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.TryStar))
    bodies = (statement for each in handlers for handler in each.handlers for statement in handler.body)
    return [
        node.lineno
        for statement in bodies
        for node in ast.walk(statement)
        if isinstance(node, ast.stmt | ast.expr) and _raises(node)
    ]


def _raises(node: ast.AST) -> bool:
    return isinstance(node, ast.Raise) or (isinstance(node, ast.Call) and ast.unparse(node.func) == "sys.exit")


@pytest.mark.parametrize("statement", ["raise lost", "sys.exit('no')", "if lost: raise lost from None"])
def test_what_is_raised_inside_is_found(statement: str) -> None:
    assert raised_in_groups(f"try:\n    f()\nexcept* OSError as lost:\n    {statement}\n") == [4]


def test_nothing_is_raised_inside_an_except_star() -> None:
    assert [f"{path}:{line}" for path in SOURCES for line in raised_in_groups(path.read_text())] == []
