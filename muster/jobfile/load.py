"""From text or plain values to a `JobSpec`, or to one error that holds all problems."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from muster.domain.jobs.job import JobSpec
from muster.domain.quoting import quote
from muster.jobfile.document import (
    KEY,
    MAX_DEPTH,
    OUTSIDE,
    START,
    Atom,
    Document,
    Listing,
    Loc,
    Node,
    Place,
    Scalar,
    Table,
    UnreadableError,
    kind,
    read,
    read_all,
    spell,
    unfold,
)
from muster.jobfile.errors import FieldError, JobFileError, Problem
from muster.jobfile.plain import plain_job

_NOTHING = Scalar(value=None, text="", at=START)


@dataclass(frozen=True, slots=True)
class _Source:
    """Where jobs are read from, and what is replaced in them."""

    name: str
    text: str
    base: Path | None
    overrides: Mapping[str, Any]


def from_text(text: str, source: str, *, base: Path | None, overrides: Mapping[str, Any]) -> JobSpec:
    """See `muster.jobfile.load_job`."""
    try:
        document = read(text)
    except UnreadableError as error:
        raise _unreadable(source, text, error) from None
    return _job(_Source(source, text, base, overrides), document)


def all_from_text(
    text: str, source: str, *, base: Path | None, overrides: Mapping[str, Any]
) -> tuple[tuple[int, JobSpec], ...]:
    """See `muster.jobfile.load_jobs`."""
    try:
        documents = read_all(text)
    except UnreadableError as error:
        raise _unreadable(source, text, error) from None
    file, jobs, problems = _Source(source, text, base, overrides), list[tuple[int, JobSpec]](), list[Problem]()
    for document in [each for each in documents if each.root is not None] or [Document(root=None, repeated=())]:
        try:
            jobs.append(((document.root or _NOTHING).at.line, _job(file, document)))
        except JobFileError as error:
            problems += error.problems
    if problems:
        raise JobFileError(source, list(dict.fromkeys(problems)), text)
    return tuple(jobs)


def from_values(document: Mapping[str, Any], source: str, *, base: Path | None) -> JobSpec:
    """See `muster.jobfile.job_from`."""
    try:
        root = node_of(document)
    except FieldError as error:
        raise JobFileError(source, [_at(OUTSIDE, (), error)]) from None
    assert isinstance(root, Table)
    return _checked(root, _Source(source, "", base, {}), [])


def node_of(value: object, depth: int = 0) -> Node:
    """Plain values as a tree without places; raises FieldError for what YAML has no word for."""
    if depth > MAX_DEPTH:
        raise FieldError(f"is nested more than {MAX_DEPTH} levels deep")
    match value:
        case Mapping():
            return Table(entries={str(key): node_of(inner, depth + 1) for key, inner in value.items()})
        case list() | tuple():
            return Listing(items=tuple(node_of(inner, depth + 1) for inner in value))
        case bool() | None:
            return Scalar(value=value, text={True: "true", False: "false", None: "null"}[value])
        case str():
            return Scalar(value=_whole_characters(str(value)), text=str(value))
        case int() | float():
            return Scalar(value=value, text=str(value))
        case _:
            raise FieldError(f"cannot hold a value of type {type(value).__name__}")


def _whole_characters(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise FieldError("holds half a character (a lone surrogate)") from None
    return text


def _no_table(root: Node | None) -> str:
    if root is None:
        return "is empty; a job needs a name, and a command or an image"
    return f"must be a map with keys such as name and command, not {kind(root)}"


def _overridden(root: Table, key: str, value: object) -> Table:
    """The tree with one value replaced or added."""
    fresh = _with(root, key.split("."), _fragment(value))
    assert isinstance(fresh, Table)
    return fresh


def _fragment(value: object) -> Node:
    """An override's value as a tree; text is read as YAML, empty text is empty text."""
    if not isinstance(value, str):
        return node_of(value)
    try:
        document = read(value)
    except UnreadableError as error:
        raise FieldError(error.message) from None
    if document.repeated:
        raise FieldError(f"has the key {quote(spell(document.repeated[0].path))} twice")
    return _outside(document.root or Scalar(value="", text=""))


def _outside(node: Node) -> Node:
    """The tree without places: those are of the override, not of the file."""
    match node:
        case Table():
            return Table(entries={key: _outside(inner) for key, inner in node.entries.items()})
        case Listing():
            return Listing(items=tuple(map(_outside, node.items)))
        case Scalar():
            return replace(node, at=OUTSIDE)


def _with(node: Node | None, path: Sequence[str], value: Node) -> Node:
    """The tree with `value` at the end of `path`; maps that are missing on the way are made."""
    if not path:
        return value
    key, *rest = path
    match node:
        case None:
            return Table(entries={key: _with(None, rest, value)})
        case Table():
            return replace(node, entries={**node.entries, key: _with(node.entries.get(key), rest, value)})
        case Listing() if key.isdecimal() and int(key) < len(node.items):
            place = int(key)
            items = (*node.items[:place], _with(node.items[place], rest, value), *node.items[place + 1 :])
            return replace(node, items=items)
        case _:
            raise FieldError(f"there is no {quote(key)} in {kind(node)}")


def _unreadable(source: str, text: str, error: UnreadableError) -> JobFileError:
    return JobFileError(source, [_at(error.at, (), FieldError(error.message))], text)


def _job(source: _Source, document: Document) -> JobSpec:
    """The job of one document, with what is replaced in it; raises JobFileError with all its problems."""
    root = document.root
    if not isinstance(root, Table):
        raise JobFileError(source.name, [_at((root or _NOTHING).at, (), FieldError(_no_table(root)))], source.text)
    problems = [
        _at(it.at, it.path, FieldError(f"stands here a second time; the first is on line {it.first.line}"))
        for it in document.repeated
    ]
    for key, value in source.overrides.items():
        try:
            root = _overridden(root, key, value)
        except FieldError as error:
            problems.append(_at(OUTSIDE, (), FieldError(f"{key}: {error.message}")))
    plain = None if problems else plain_job(unfold(root, _meant))
    return plain or _checked(root, source, problems)


def _checked(root: Table, source: _Source, problems: Sequence[Problem]) -> JobSpec:
    """The job that the tree describes; raises JobFileError if there is any problem, old or new."""
    from muster.jobfile.checking import checked  # noqa: PLC0415 - pydantic only for what is not plain

    spec, found = checked(root, source.base)
    if spec is not None and not problems:
        return spec
    located = (_at(_place(root, loc), loc, error) for loc, error in found)
    raise JobFileError(source.name, [*problems, *located], source.text)


def _meant(scalar: Scalar) -> Atom:
    """Text as it was written, but for whole numbers in their usual spelling."""
    plain = scalar.value is None or (isinstance(scalar.value, int) and str(scalar.value) == scalar.text)
    return scalar.value if plain else scalar.text


def _at(place: Place, loc: Loc, error: FieldError) -> Problem:
    return Problem(
        line=place.line,
        column=place.column,
        field=spell(loc),
        message=error.message,
        suggestion=error.suggestion,
    )


def _place(root: Table, loc: Loc) -> Place:
    """Where to look for what `loc` names: a single value itself, the key of a map or list, else what is around it."""
    node: Node = root
    here = key = root.at
    for part in loc:
        if isinstance(node, Table) and part in node.entries:
            key = node.keys.get(str(part), OUTSIDE)
            node = node.entries[str(part)]
            here = node.at if isinstance(node, Scalar) else key
        elif isinstance(node, Listing) and isinstance(part, int) and part < len(node.items):
            node = node.items[part]
            here = node.at
        else:
            return key if part == KEY else here
    return here
