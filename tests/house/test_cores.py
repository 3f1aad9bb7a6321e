"""Classes of the cores stay small, and nobody writes into the object of another."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORES = ("coordinator/core",)
MODULES = [path for core in CORES for path in sorted((ROOT / core).rglob("*.py"))]
MOST_ATTRIBUTES = 12
MOST_METHODS = 20

Function = ast.FunctionDef | ast.AsyncFunctionDef


def faults(tree: ast.Module) -> Iterator[str]:
    """What a module does that it must not."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield from _too_large(node)
        for target in _written(node):
            if (name := _of_another(target)) is not None:
                yield f"line {target.lineno}: writes to {name}, which belongs to another object; give that one a verb"


def _too_large(class_: ast.ClassDef) -> Iterator[str]:
    """A value has as many fields as there is to tell; whoever keeps a state has few attributes."""
    attributes, methods = len(_attributes(class_)), sum(isinstance(node, Function) for node in class_.body)
    if attributes > MOST_ATTRIBUTES and not _is_value(class_):
        yield f"{class_.name} has {attributes} attributes; split it, {MOST_ATTRIBUTES} are the most"
    if methods > MOST_METHODS:
        yield f"{class_.name} has {methods} methods; split it, {MOST_METHODS} are the most"


def _is_value(class_: ast.ClassDef) -> bool:
    """Whether nothing of it ever changes: a frozen dataclass, or a named tuple."""
    frozen = any("frozen=True" in ast.unparse(decorator) for decorator in class_.decorator_list)
    return frozen or any(ast.unparse(base) == "NamedTuple" for base in class_.bases)


def _attributes(class_: ast.ClassDef) -> set[str]:
    fields = {ast.unparse(node.target) for node in class_.body if isinstance(node, ast.AnnAssign)}
    for node in ast.walk(class_):
        for target in _written(node):
            if isinstance(target, ast.Attribute) and _is_self(target.value):
                fields.add(target.attr)
    return fields


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
def test_a_core_has_small_classes_and_writes_to_no_object_of_another(path: Path) -> None:
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
        "class A:\n def __init__(self):\n" + "".join(f"  self.a{number} = 1\n" for number in range(13)),
        "class A:\n" + "".join(f" def f{number}(self): ...\n" for number in range(21)),
    ],
)
def test_a_planted_fault_is_found(planted: str) -> None:
    assert len(list(faults(ast.parse(planted)))) == 1


def test_a_value_may_have_many_fields_and_an_object_may_write_to_itself() -> None:
    value = "@dataclass(frozen=True)\nclass A:\n" + "".join(f" a{number}: int\n" for number in range(13))
    own = "class A:\n def f(self): self.entries[1], self.b = 1, 2"
    assert list(faults(ast.parse(value))) == list(faults(ast.parse(own))) == []
