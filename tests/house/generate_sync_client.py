"""Writes the synchronous client out of the asynchronous one: the same nouns, methods, arguments and sentences.

python tests/house/generate_sync_client.py
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeGuard

ROOT = Path(__file__).parents[2]
CLIENT = Path("muster", "client")
SERVICES = CLIENT / "services"
SYNC = CLIENT / "sync"
PREFIX = "Sync"
INDENT = 4
MOST_ARGUMENTS = 6
"""Parts of a function; more need a word about it."""

WRAPPED: Mapping[str, str] = {"Attachment": "SyncAttachment", "PortForward": "SyncPortForward"}
"""What is given out with methods of its own, and its synchronous form, which stands in `attachments/sync_forms.py`."""

_STREAM = re.compile(r"AsyncGenerator\[(.+), None\]")
_WORDS = {"async with ": "with ", "async for ": "for ", "await ": "", "muster.Client(": "muster.SyncClient("}


def generated(root: Path = ROOT) -> Mapping[Path, str]:
    """Every module of the synchronous client by its path."""
    modules = {SYNC / "client.py": _client(_read(root / CLIENT / "client.py"))}
    for path in sorted((root / SERVICES).glob("*.py")):
        tree = _read(path)
        classes = [each for each in tree.body if isinstance(each, ast.ClassDef) and each.name.endswith("Client")]
        if classes:
            modules[SYNC / path.name] = _service(path, tree, classes)
    return {path: _formatted(text) for path, text in modules.items()}


def _read(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def _service(path: Path, tree: ast.Module, classes: list[ast.ClassDef]) -> str:
    names = ", ".join(each.name for each in classes)
    bodies = [_class(each) for each in classes]
    needed = {name for body in bodies for name in re.findall(r"\w+", _code(body))}
    always, checked = _imports(tree, needed - {"Calls", "AsyncGenerator"})
    stream = ["from muster.client.blocking.stream import SyncStream"] if "SyncStream" in needed else []
    wrapped = sorted(needed & {*WRAPPED.values()})
    stream += [f"from muster.client.attachments.sync_forms import {', '.join(wrapped)}"] if wrapped else []
    return "\n".join(
        [
            f'"""The synchronous form of `{_dotted(path)}`, made from it by `make sync`; change that one."""',
            *always,
            f"from {_dotted(path)} import {names}",
            "from muster.client.blocking.loop_thread import LoopThread",
            *stream,
            *_checked(checked),
            *bodies,
        ]
    )


def _client(tree: ast.Module) -> str:
    classes = [each for each in tree.body if isinstance(each, ast.ClassDef)]
    nouns = {each.name: [noun for noun in each.body if _is_noun(noun)] for each in classes}
    where = {noun.name: (_module_of(noun), _returned(noun)) for each in nouns.values() for noun in each}
    lines = [
        '"""The synchronous form of `muster.client.client`, made from it by `make sync`; change that one."""',
        "from functools import cached_property",
        "from typing import TYPE_CHECKING",
        "from muster.client.blocking.frame import SyncFrame",
        *_checked([f"from {module} import {PREFIX}{name}" for module, name in where.values()]),
        "# What a program does not use is not loaded.",
    ]
    for each in classes:
        (base,) = each.bases
        under = "SyncFrame" if ast.unparse(base) == "ClientFrame" else f"{PREFIX}{ast.unparse(base)}"
        lines += [f"class {PREFIX}{each.name}({under}):", _documented(_plain(each), 4)]
        lines += [line for noun in nouns[each.name] for line in _noun(noun, *where[noun.name])]
    return "\n".join(lines)


def _noun(noun: ast.FunctionDef, module: str, name: str) -> list[str]:
    return [
        "    @cached_property",
        f'    def {noun.name}(self) -> "{PREFIX}{name}":',
        _documented(_plain(noun), 8),
        f"        from {module} import {PREFIX}{name}",
        f"        return {PREFIX}{name}(self._own.{noun.name}, self._loop)",
    ]


def _is_noun(node: ast.stmt) -> TypeGuard[ast.FunctionDef]:
    return isinstance(node, ast.FunctionDef) and any(
        isinstance(each, ast.Name) and each.id == "cached_property" for each in node.decorator_list
    )


def _module_of(noun: ast.FunctionDef) -> str:
    """The module of the synchronous form of what a noun gives."""
    (imported,) = (each for each in noun.body if isinstance(each, ast.ImportFrom))
    assert imported.module is not None
    return f"{_dotted(SYNC)}.{imported.module.rpartition('.')[2]}"


def _returned(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """The annotation of what is returned, without quotes."""
    assert function.returns is not None
    return str(function.returns.value) if isinstance(function.returns, ast.Constant) else ast.unparse(function.returns)


def _class(service: ast.ClassDef) -> str:
    methods = (each for each in service.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))
    public = [each for each in methods if not each.name.startswith("_")]
    return "\n".join(
        [
            f"class {PREFIX}{service.name}:",
            _documented(_plain(service), 4),
            f"    def __init__(self, own: {service.name}, loop: LoopThread) -> None:",
            "        self._own = own",
            "        self._loop = loop",
            *(_method(each) for each in public),
        ]
    )


def _method(method: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    returned = _returned(method)
    streamed = _STREAM.fullmatch(returned)
    shown = f'"SyncStream[{streamed[1]}]"' if streamed else ast.unparse(method.returns or ast.Constant(None))
    call = f"self._own.{method.name}({', '.join(_passed(method.args))})"
    how = "stream" if streamed else "run"
    result = "" if returned == "None" else "return "
    asked = f"self._loop.{how}({call})"
    if returned in WRAPPED:
        shown, asked = WRAPPED[returned], f"{WRAPPED[returned]}({asked}, self._loop)"
    many = len([*method.args.args, *method.args.kwonlyargs]) > MOST_ARGUMENTS + 1
    reason = "  # noqa: PLR0913 - one for each condition\n" if many else ""
    return "\n".join(
        [
            f"    def {method.name}({reason}{ast.unparse(method.args)}) -> {shown}:",
            _documented(_plain(method), 8),
            f"        {result}{asked}",
        ]
    )


def _passed(arguments: ast.arguments) -> Iterator[str]:
    yield from (each.arg for each in arguments.args[1:])
    yield from (f"{each.arg}={each.arg}" for each in arguments.kwonlyargs)


def _plain(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """The docstring as it reads without `async`; its lines are indented as far as they are beyond the first."""
    text = ast.get_docstring(node, clean=False) or ""
    margin = f"\n{' ' * (node.col_offset + INDENT)}"
    text = text.replace(margin, "\n").rstrip()
    for before, after in _WORDS.items():
        text = text.replace(before, after)
    return text


def _documented(text: str, indent: int) -> str:
    lines = [f"{' ' * indent}{line}".rstrip() for line in f'"""{text}'.splitlines()]
    lines[-1:] = [f'{lines[-1]}"""'] if len(lines) == 1 else [lines[-1], f'{" " * indent}"""']
    return "\n".join(lines)


def _code(body: str) -> str:
    """The names that a class needs: without what stands in its docstrings."""
    tree = ast.parse(body)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            node.body = [each for each in node.body if not _is_text(each)] or [ast.Pass()]
    return ast.unparse(tree)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _imports(tree: ast.Module, needed: set[str]) -> tuple[list[str], list[str]]:
    """The imports of a module that bind needed names: those that always happen, those for the type checker."""
    always = _bound(tree.body, needed)
    blocks = (each for each in tree.body if isinstance(each, ast.If))
    return always, [line for block in blocks for line in _bound(block.body, needed)]


def _bound(body: list[ast.stmt], needed: set[str]) -> list[str]:
    found = []
    for each in body:
        if isinstance(each, ast.ImportFrom):
            names = [alias.name for alias in each.names if alias.name in needed and alias.asname is None]
            found += [f"from {each.module} import {', '.join(names)}"] if names else []
    return found


def _checked(imports: list[str]) -> list[str]:
    """Imports for the type checker alone."""
    checking = ["from typing import TYPE_CHECKING"] if imports else []
    return [*checking, *(["if TYPE_CHECKING:"] if imports else []), *(f"    {line}" for line in imports)]


def _dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).parts if path.is_absolute() else path.parts
    return ".".join(parts).removesuffix(".py")


def _formatted(text: str) -> str:
    """The source as ruff would have it."""
    ruff = [sys.executable, "-m", "ruff"]
    for words in (["check", "--quiet", "--select", "I,F401", "--fix", "-"], ["format", "--quiet", "-"]):
        command = [*ruff, *words[:-1], "--stdin-filename", "muster/client/sync/made.py", "-"]
        text = subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return text


def main() -> None:
    """Write all of it."""
    for path, text in generated().items():
        (ROOT / path).write_text(text)


if __name__ == "__main__":
    main()
