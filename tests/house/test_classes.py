"""Classes stay small, and have everything that they need when they are made.

A value has as many fields as there is to tell: a frozen dataclass, a named tuple, and the form of a document, which is
a class that only declares fields and leaves to its base what becomes of them.
"""

import ast
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TypeGuard

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("agent", "console", "coordinator", "muster")
MOST_ATTRIBUTES = 12
MOST_METHODS = 20

SET_BY_A_CALL = {
    "coordinator/trust/authority.py: FleetAuthority": "its constructor calls `renew_server`, which sets the attribute",
}
"""Classes with an attribute that the constructor sets by way of a method."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def classes() -> Sequence[tuple[str, ast.ClassDef]]:
    """Every class of the three packages, under its module and name."""
    return tuple(_read())


def _read() -> Iterator[tuple[str, ast.ClassDef]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if "_pb2" not in path.name:
                for node in ast.walk(ast.parse(path.read_text())):
                    if isinstance(node, ast.ClassDef):
                        yield f"{path.relative_to(ROOT)}: {node.name}", node


def too_large(class_: ast.ClassDef) -> list[str]:
    """How a class is larger than it may be."""
    own = {node.attr for node in ast.walk(class_) if _is_written_attribute(node)}
    attributes = len(own | set(_declared(class_)))
    methods = sum(isinstance(node, Function) for node in class_.body)
    found = []
    if attributes > MOST_ATTRIBUTES and not _is_value(class_, changes=bool(own)):
        found.append(f"{attributes} attributes, {MOST_ATTRIBUTES} are the most")
    if methods > MOST_METHODS:
        found.append(f"{methods} methods, {MOST_METHODS} are the most")
    return found


def unset(class_: ast.ClassDef) -> list[str]:
    """Attributes that an object of a class is said to have, and does not have once it is made."""
    own = [node for node in ast.walk(class_) if isinstance(node, ast.AnnAssign) and _is_written_attribute(node.target)]
    found = [ast.unparse(node.target) for node in own if node.value is None]
    if any(isinstance(node, Function) and node.name == "__init__" for node in class_.body):
        found += [name for name, value in _declared(class_).items() if value is None]
    return found


def _declared(class_: ast.ClassDef) -> dict[str, ast.expr | None]:
    """Fields in the body of a class, with their defaults; constants of the class are none."""
    fields = (node for node in class_.body if isinstance(node, ast.AnnAssign))
    return {ast.unparse(node.target): node.value for node in fields if "ClassVar" not in ast.unparse(node.annotation)}


def _is_value(class_: ast.ClassDef, *, changes: bool) -> bool:
    decorators = " ".join(ast.unparse(decorator) for decorator in class_.decorator_list)
    is_form = "dataclass" not in decorators and not changes
    return "frozen=True" in decorators or is_form


def _is_written_attribute(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id in {"self", "cls"}
    )


def test_classes_stay_small() -> None:
    assert {name: faults for name, each in classes() if (faults := too_large(each))} == {}


def test_an_object_has_all_its_attributes_once_it_is_made() -> None:
    assert {name: faults for name, each in classes() if name not in SET_BY_A_CALL and (faults := unset(each))} == {}


MANY_FIELDS = "".join(f" a{number}: int\n" for number in range(13))


@pytest.mark.parametrize(
    "planted",
    [
        "class A:\n def __init__(self):\n" + "".join(f"  self.a{number} = 1\n" for number in range(13)),
        "class A:\n def __init__(self):\n  " + ", ".join(f"self.a{number}" for number in range(13)) + " = range(13)",
        "class A:\n" + "".join(f" def f{number}(self): ...\n" for number in range(21)),
        f"@dataclass\nclass A:\n{MANY_FIELDS}",
        f"class A:\n{MANY_FIELDS} def f(self): self.a0 = 1",
    ],
)
def test_a_class_that_is_too_large_is_found(planted: str) -> None:
    assert len(too_large(_class(planted))) == 1


@pytest.mark.parametrize(
    "value",
    [
        f"@dataclass(frozen=True)\nclass A:\n{MANY_FIELDS}",
        f"class A(NamedTuple):\n{MANY_FIELDS}",
        f"class A(TypedDict):\n{MANY_FIELDS}",
    ],
)
def test_a_value_may_have_many_fields(value: str) -> None:
    assert too_large(_class(value)) == []


@pytest.mark.parametrize(
    "planted",
    [
        "class A:\n def __init__(self):\n  self.a: int",
        "class A:\n a: int\n def __init__(self): ...",
    ],
)
def test_an_attribute_that_is_not_set_is_found(planted: str) -> None:
    assert len(unset(_class(planted))) == 1


def test_a_field_with_a_default_is_set() -> None:
    assert unset(_class("class A:\n a: int = 1\n b: ClassVar[int]\n def __init__(self): self.c: int = 2")) == []


def _class(source: str) -> ast.ClassDef:
    [class_] = ast.parse(source).body
    assert isinstance(class_, ast.ClassDef)
    return class_
