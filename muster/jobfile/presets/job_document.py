"""A job as its file describes it, on its way to the coordinator, which joins it with the presets that it names."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from muster.jobfile.document import MAX_DEPTH, Listing, Node, Scalar, Table, UnreadableError, read
from muster.jobfile.errors import FieldError


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDocument:
    """The values of a job file that names presets, with all in it that only its place can read."""

    root: Table

    @property
    def name(self) -> str:
        """The name of the job; empty where a template gives it one."""
        return _text(self.root, "name")

    @property
    def project(self) -> str:
        """The project that the file names; empty: none."""
        return _text(self.root, "project")

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders that go along as code, each once."""
        found = (_folder(code) for code in self._codes())
        return tuple(dict.fromkeys(folder for folder in found if folder))

    @property
    def text(self) -> str:
        """The values as they are sent: JSON, and YAML where JSON has no such spelling."""
        return written(self.root)

    def in_project(self, project: str) -> "JobDocument":
        """The same in a project, where it names none."""
        if self.project or not project:
            return self
        named = {**self.root.entries, "project": Scalar(value=project, text=project)}
        return JobDocument(root=replace(self.root, entries=named))

    def with_trees(self, trees: Mapping[str, tuple[str, int]]) -> "JobDocument":
        """The same with trees in the depot, and the sizes of their forms, in place of folders."""
        return JobDocument(root=_in_code(self.root, trees))

    def _codes(self) -> Iterator[Node]:
        yield from (table.entries["code"] for table in _with_code(self.root))


def _with_code(root: Table) -> Iterator[Table]:
    roles = root.entries.get("roles")
    inner = roles.items if isinstance(roles, Listing) else ()
    inner = tuple(roles.entries.values()) if isinstance(roles, Table) else inner
    yield from (each for each in (root, *inner) if isinstance(each, Table) and "code" in each.entries)


def _folder(code: Node) -> str:
    named = code.entries.get("folder") if isinstance(code, Table) else code
    return named.text if isinstance(named, Scalar) and named.value is not None else ""


def _in_code(root: Table, trees: Mapping[str, tuple[str, int]]) -> Table:
    entries = dict(root.entries)
    if "code" in entries and (found := trees.get(_folder(entries["code"]))) is not None:
        code = entries["code"]
        kept = code.entries if isinstance(code, Table) else {}
        own = {key: value for key, value in kept.items() if key != "folder"}
        tree, size = found
        named = {"tree": Scalar(value=tree, text=tree), "size": Scalar(value=size, text=str(size))}
        entries["code"] = Table(entries={**own, **named})
    match entries.get("roles"):
        case Listing(items=items):
            entries["roles"] = Listing(items=tuple(_in_role(each, trees) for each in items))
        case Table(entries=named_roles):
            entries["roles"] = Table(entries={name: _in_role(each, trees) for name, each in named_roles.items()})
    return Table(entries=entries)


def _in_role(role: Node, trees: Mapping[str, tuple[str, int]]) -> Node:
    return _in_code(role, trees) if isinstance(role, Table) else role


def _text(root: Table, key: str) -> str:
    value = root.entries.get(key)
    return value.text if isinstance(value, Scalar) and value.value is not None else ""


def written(node: Node) -> str:
    """A tree as text that reads to the same tree: JSON but for numbers and words that YAML alone spells so."""
    match node:
        case Table(entries=entries):
            return "{" + ", ".join(f"{_quoted(key)}: {written(value)}" for key, value in entries.items()) + "}"
        case Listing(items=items):
            return "[" + ", ".join(map(written, items)) + "]"
        case Scalar(value=str()):
            return _quoted(node.text)
        case Scalar():
            return node.text or "null"


def _quoted(text: str) -> str:
    return json.dumps(text)


def table_of(text: str) -> Table:
    """The tree of such a text; raises FieldError, which says what is wrong with it."""
    try:
        root = _node(json.loads(text, parse_int=_Number, parse_float=_Number, parse_constant=_refuse))
    except RecursionError:
        raise FieldError(f"is nested more than {MAX_DEPTH} levels deep") from None
    except ValueError:
        root = _from_yaml(text)
    if not isinstance(root, Table):
        raise FieldError("must be a map with keys such as name and command")
    return root


class _Number(str):
    """A number of JSON, as it is spelled."""

    __slots__ = ()


def _refuse(word: str) -> Any:  # noqa: ANN401 - it never returns
    raise ValueError(word)


def _node(value: object, depth: int = 0) -> Node:
    if depth > MAX_DEPTH:
        raise FieldError(f"is nested more than {MAX_DEPTH} levels deep")
    match value:
        case dict():
            return Table(entries={str(key): _node(inner, depth + 1) for key, inner in value.items()})
        case list():
            return Listing(items=tuple(_node(inner, depth + 1) for inner in value))
        case _Number():
            return _number(str(value))
        case str():
            return Scalar(value=_whole(value), text=value)
        case bool():
            return Scalar(value=value, text="true" if value else "false")
        case _:
            return Scalar(value=None, text="null")


def _number(text: str) -> Scalar:
    whole = text.removeprefix("-").isdecimal() and len(text) <= _LONGEST_WHOLE
    return Scalar(value=int(text) if whole else float(text), text=text)


_LONGEST_WHOLE = 30
"""Digits of whole numbers; longer ones are floats, as they are in YAML."""


def _whole(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise FieldError("holds half a character (a lone surrogate)") from None
    return text


def _from_yaml(text: str) -> Node:
    try:
        document = read(text)
    except UnreadableError as error:
        raise FieldError(f"is neither JSON nor YAML: {error.message}") from None
    if document.root is None or document.repeated:
        raise FieldError("says nothing" if document.root is None else "has a key twice")
    return document.root
