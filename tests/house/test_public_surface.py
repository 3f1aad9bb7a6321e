"""What users import: all of it comes from `muster`, is typed, and has an example that fits."""

import ast
import inspect
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

import muster
from muster import Client, SyncClient, errors
from tests.house.generate_stubs import ROOT
from tests.house.generate_sync_client import SYNC, generated


def test_the_synchronous_client_is_what_its_generator_makes() -> None:
    made = generated()
    assert {path: (ROOT / path).read_text() for path in made} == dict(made), "run `make sync`"
    assert {path.name for path in (ROOT / SYNC).glob("*.py")} == {path.name for path in made} | {"__init__.py"}


def test_every_public_name_is_there_and_known_to_type_checkers() -> None:
    tree = ast.parse((ROOT / "muster" / "__init__.py").read_text())
    (checked,) = (each for each in tree.body if isinstance(each, ast.If))
    seen = {alias.name for each in checked.body if isinstance(each, ast.ImportFrom) for alias in each.names}
    assert seen | {"__version__"} == set(muster.__all__)
    assert [name for name in muster.__all__ if not hasattr(muster, name)] == []
    assert (ROOT / "muster" / "py.typed").exists()


def test_every_error_that_clients_raise_is_public() -> None:
    internal = {"IllegalTransitionError"}
    named = {
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.MusterError) and name not in internal
    }
    assert named <= set(muster.__all__)


def test_nothing_is_loaded_before_it_is_used() -> None:
    program = "import sys, muster; print([name for name in sys.modules if name.startswith('muster')])"
    printed = subprocess.run(
        [sys.executable, "-S", "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert printed == "['muster']\n"


def _nouns(client: type) -> Iterator[tuple[str, type]]:
    """The services of a client by their nouns."""
    opened: Any = client("127.0.0.1:1")
    for name, found in inspect.getmembers_static(client):
        if type(found).__name__ == "cached_property":
            yield name, type(getattr(opened, name))


def _methods(kind: type) -> dict[str, Any]:
    return {name: found for name, found in vars(kind).items() if inspect.isfunction(found) and not name.startswith("_")}


def _arguments(method: Any) -> list[tuple[object, ...]]:
    found = inspect.signature(method).parameters.values()
    return [(each.name, each.kind, str(each.annotation), each.default is each.empty) for each in found]


def test_both_clients_have_the_same_nouns_methods_and_arguments() -> None:
    one, other = dict(_nouns(Client)), dict(_nouns(SyncClient))
    assert one.keys() == other.keys()
    for noun, kind in one.items():
        first, second = _methods(kind), _methods(other[noun])
        assert first.keys() == second.keys(), noun
        for name in first:
            assert _arguments(first[name]) == _arguments(second[name]), f"{noun}.{name}"


def _example(function: Any) -> str:
    """The code of the example in a docstring."""
    lines = (line.strip() for line in (inspect.getdoc(function) or "").splitlines())
    return "\n".join(line[4:] for line in lines if line.startswith((">>> ", "... ")))


def test_every_method_has_an_example_that_calls_it_with_arguments_that_it_has() -> None:
    for client in (Client, SyncClient):
        nouns = dict(_nouns(client))
        for noun, kind in nouns.items():
            for name, method in _methods(kind).items():
                example = ast.parse(f"async def example():\n{textwrap.indent(_example(method), '    ')}")
                calls = [
                    each
                    for each in ast.walk(example)
                    if isinstance(each, ast.Call) and ast.unparse(each.func) == f"client.{noun}.{name}"
                ]
                assert calls, f"{client.__name__}.{noun}.{name}"
                for call in calls:
                    words = {str(each.arg): None for each in call.keywords}
                    inspect.signature(method).bind(None, *call.args, **words)
                awaited = any(isinstance(each, ast.Await | ast.AsyncFor) for each in ast.walk(example))
                streams = any(each.is_async for found in ast.walk(example) for each in getattr(found, "generators", []))
                assert (awaited or streams) == (client is Client), f"{client.__name__}.{noun}.{name}"


def test_the_page_names_every_noun_and_every_method() -> None:
    page = (ROOT / "docs" / "sdk.md").read_text()
    rows = {line.split("`")[1]: line for line in reversed(page.splitlines()) if line.startswith("| `")}
    for noun, kind in _nouns(Client):
        missing = [name for name in _methods(kind) if f"`{name}(" not in rows[noun]]
        assert missing == [], noun
