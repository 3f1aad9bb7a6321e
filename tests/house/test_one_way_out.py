"""The command line has one way to a terminal, on which text from others becomes harmless."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.house.generate_stubs import ROOT

CLI = ROOT / "muster" / "cli"
PLACES: Mapping[str, str] = {
    "print": "screen.py",
    "Console": "nowhere: plain/console.py inherits it",
    "get_console": "nowhere",
    "echo": "nowhere",
    "secho": "nowhere",
    "from_markup": "nowhere",
    "Text": "tables.py",
    "PlainConsole": "screen.py",
    "writelines": "nowhere",
}
"""Calls, and the only module that may make them."""
STREAMS = frozenset({"stdout", "stderr"})


def _calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            match node.func:
                case ast.Name(id=name) | ast.Attribute(attr=name):
                    yield name, node


def _is_method(call: ast.Call) -> bool:
    """Whether it is one of ours or of a console, like `screen().print`."""
    return isinstance(call.func, ast.Attribute)


def test_only_one_module_prints_and_only_one_makes_text_for_tables() -> None:
    wrong = [
        f"{path.name}:{call.lineno}: {name}"
        for path in sorted(CLI.rglob("*.py"))
        for name, call in _calls(path)
        if name in PLACES and PLACES[name] != path.name and not (name == "print" and _is_method(call))
    ]

    assert wrong == []


def test_nobody_writes_to_a_stream_but_what_prints_logs() -> None:
    wrong = [
        f"{path.name}:{call.lineno}"
        for path in sorted(CLI.rglob("*.py"))
        for name, call in _calls(path)
        if name == "write"
        and isinstance(call.func, ast.Attribute)
        and any(isinstance(each, ast.Attribute) and each.attr in STREAMS for each in ast.walk(call.func.value))
    ]

    assert wrong == []


def test_a_module_that_prints_would_be_found(tmp_path: Path) -> None:
    file = tmp_path / "new.py"
    file.write_text("import sys\nprint('a')\nfrom rich.console import Console\nConsole()\nsys.stdout.write('a')\n")

    assert [name for name, _ in _calls(file)] == ["print", "Console", "write"]
