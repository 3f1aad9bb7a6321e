"""Nobody in a core writes into the object of another; `test_classes.py` has the size of its classes."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORES = ("coordinator/core",)
MODULES = [path for core in CORES for path in sorted((ROOT / core).rglob("*.py"))]


def faults(tree: ast.Module) -> Iterator[str]:
    """What a module does that it must not."""
    for node in ast.walk(tree):
        for target in _written(node):
            if (name := _of_another(target)) is not None:
                yield f"line {target.lineno}: writes to {name}, which belongs to another object; give that one a verb"


def _written(node: ast.AST) -> Iterator[ast.expr]:
    """What a statement assigns to, or deletes."""
    match node:
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            for target in targets:
                yield from target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            yield target
        case _:
            pass


def _of_another(target: ast.expr) -> str | None:
    """The attribute of another object that is written, as a whole or one entry of it; None: there is none."""
    while isinstance(target, ast.Subscript):
        target = target.value
    if isinstance(target, ast.Attribute) and not _is_self(target.value):
        return ast.unparse(target)
    return None


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in {"self", "cls"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_core_writes_to_no_object_of_another(path: Path) -> None:
    assert list(faults(ast.parse(path.read_text()))) == []


@pytest.mark.parametrize(
    "planted",
    [
        "def f(turn): turn.room = True",
        "def f(turn): turn.cluster.refused[1] = ''",
        "def f(usage): usage.memory += 1",
        "def f(turn): del turn.cluster.refused[1]",
        "def f(a, b): a, b.c = 1, 2",
        "class A:\n def f(self): self.other.field = 1",
    ],
)
def test_a_planted_fault_is_found(planted: str) -> None:
    assert len(list(faults(ast.parse(planted)))) == 1


def test_an_object_may_write_to_itself() -> None:
    assert list(faults(ast.parse("class A:\n def f(self): self.entries[1], self.b = 1, 2"))) == []
