"""From text or plain values to a `JobSpec`, or to one error that holds all problems."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

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

if TYPE_CHECKING:
    from muster.jobfile.build import Builder

T = TypeVar("T")

_NOTHING = Scalar(value=None, text="", at=START)


_REFUSED = re.compile(r"(?P<path>[a-z_]+(?:\.[a-z_]+|\[\d+\]|\[\"[^\"]*\"\])*): (?P<message>.+)")
"""A line of a refusal that names a value: `roles[0].secrets[1].env: has no key`."""
_PART = re.compile(r"([a-z_]+)|\[(\d+)\]|\[\"([^\"]*)\"\]")


@dataclass(frozen=True, slots=True)
class _Source:
    """Where jobs are read from, and what is replaced in them."""

    name: str
    text: str
    base: Path | None
    overrides: Mapping[str, Any]


class LocatedErrors(Exception):  # noqa: N818 - it holds several
    """What `made` of `all_made` finds wrong with a document, and where."""

    def __init__(self, root: Table, found: Sequence[tuple[Loc, FieldError]]) -> None:
        super().__init__(f"{len(found)} problems")
        self.root = root
        self.found = found


def from_text(text: str, source: str, *, base: Path | None, overrides: Mapping[str, Any]) -> JobSpec:
    """See `muster.jobfile.load_job`."""
    try:
        document = read(text)
    except UnreadableError as error:
        raise unreadable(source, text, error) from None
    return _job(_Source(source, text, base, overrides), document)


def all_from_text(
    text: str, source: str, *, base: Path | None, overrides: Mapping[str, Any]
) -> tuple[tuple[int, JobSpec], ...]:
    """See `muster.jobfile.load_jobs`."""
    return all_made(text, source, base=base, overrides=overrides, made=_nothing_else)


def all_made(
    text: str,
    source: str,
    *,
    base: Path | None,
    overrides: Mapping[str, Any],
    made: Callable[[Table], T | None],
) -> tuple[tuple[int, JobSpec | T], ...]:
    """The jobs of a file, but for documents of which `made` makes something else.

    `made` raises LocatedErrors. Raises JobFileError with all problems.
    """
    try:
        documents = read_all(text)
    except UnreadableError as error:
        raise unreadable(source, text, error) from None
    file, jobs, problems = _Source(source, text, base, overrides), list[tuple[int, JobSpec | T]](), list[Problem]()
    for document in [each for each in documents if each.root is not None] or [Document(root=None, repeated=())]:
        try:
            root, wrong = _root(file, document)
            other = None if wrong else made(root)
            job = other if other is not None else _job(file, document)
            jobs.append(((document.root or _NOTHING).at.line, job))
        except JobFileError as error:
            problems += error.problems
        except LocatedErrors as error:
            problems += [located(error.root, loc, each) for loc, each in error.found]
    if problems:
        raise JobFileError(source, list(dict.fromkeys(problems)), text)
    return tuple(jobs)


def root_in_file(text: str, number: int, overrides: Mapping[str, Any]) -> Table | None:
    """The map of one job of a file, counted from 0; None where there is none that can be read."""
    try:
        documents = [each for each in read_all(text) if each.root is not None]
        return _root(_Source("", text, None, overrides), documents[number])[0]
    except (UnreadableError, JobFileError, IndexError):  # it has changed since
        return None


def _nothing_else(_: Table) -> JobSpec | None:
    return None


def from_values(
    document: Mapping[str, Any], source: str, *, base: Path | None, overrides: Mapping[str, Any] = MappingProxyType({})
) -> JobSpec:
    """See `muster.jobfile.job_from`."""
    try:
        root = node_of(document)
        assert isinstance(root, Table)
        for key, value in overrides.items():
            root = _replaced(root, key, value)
    except FieldError as error:
        raise JobFileError(source, [_at(OUTSIDE, (), error)]) from None
    return _checked(root, _Source(source, "", base, {}), [])


def _replaced(root: Table, key: str, value: object) -> Table:
    """The tree with one value replaced, as `--set KEY=VALUE` says; FieldError names the key."""
    try:
        return _overridden(root, key, value)
    except FieldError as error:
        raise FieldError(f"{key}: {error.message}") from None


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
    """The tree with one value replaced or added, or with `null` taken away."""
    fresh = _with(root, _path_of(key), _fragment(value))
    assert isinstance(fresh, Table)
    return fresh


def _path_of(key: str) -> Sequence[str]:
    """The parts of a dotted key: `roles[0].count` and `roles.0.count` are the same."""
    path = re.sub(r"\[(\d+)\]", r".\1", key).split(".")
    if not all(path):
        raise FieldError("is not a key such as resources.gpus or roles[0].count")
    return path


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
            return Table(entries={} if _is_null(rest, value) else {key: _with(None, rest, value)})
        case Table() if _is_null(rest, value):
            return replace(node, entries={name: inner for name, inner in node.entries.items() if name != key})
        case Table():
            return replace(node, entries={**node.entries, key: _with(node.entries.get(key), rest, value)})
        case Listing() if key.isdecimal() and int(key) < len(node.items):
            place = int(key)
            items = (*node.items[:place], _with(node.items[place], rest, value), *node.items[place + 1 :])
            return replace(node, items=items)
        case _:
            raise FieldError(f"there is no {quote(key)} in {kind(node)}")


def _is_null(rest: Sequence[str], value: Node) -> bool:
    """Whether a key is to be taken away: the last one of a path, with the value null."""
    return not rest and isinstance(value, Scalar) and value.value is None


def unreadable(source: str, text: str, error: UnreadableError) -> JobFileError:
    """The error about a text of which nothing can be used."""
    return JobFileError(source, [_at(error.at, (), FieldError(error.message))], text)


def _job(source: _Source, document: Document) -> JobSpec:
    """The job of one document, with what is replaced in it; raises JobFileError with all its problems."""
    root, problems = _root(source, document)
    plain = None if problems else plain_job(unfold(root, _meant))
    return plain or _checked(root, source, problems)


def _root(source: _Source, document: Document) -> tuple[Table, Sequence[Problem]]:
    """The map of one document, with what is replaced in it, and what is wrong with that; raises JobFileError."""
    root = document.root
    if not isinstance(root, Table):
        raise JobFileError(source.name, [_at((root or _NOTHING).at, (), FieldError(_no_table(root)))], source.text)
    problems = [
        _at(it.at, it.path, FieldError(f"stands here a second time; the first is on line {it.first.line}"))
        for it in document.repeated
    ]
    for key, value in source.overrides.items():
        try:
            root = _replaced(root, key, value)
        except FieldError as error:
            problems.append(_at(OUTSIDE, (), error))
    return root, problems


def _checked(root: Table, source: _Source, problems: Sequence[Problem]) -> JobSpec:
    """The job that the tree describes; raises JobFileError if there is any problem, old or new."""
    from muster.jobfile.checking import checked  # noqa: PLC0415 - pydantic only for what is not plain

    spec, found = checked(root, source.base)
    if spec is not None and not problems:
        return spec
    raise JobFileError(source.name, [*problems, *(located(root, loc, error) for loc, error in found)], source.text)


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


def located(root: Table, loc: Loc, error: FieldError) -> Problem:
    """The problem with its place in the file."""
    return _at(_place(root, loc), loc, error)


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
        elif isinstance(node, Listing) and not isinstance(part, int):
            continue  # the list is the short form of a map with that key
        else:
            return key if part == KEY else here
    return here


def refused_in_file(
    message: str, source: str, text: str, *, number: int, base: Path | None, overrides: Mapping[str, Any]
) -> JobFileError | None:
    """The refusal with the lines of a file's job, counted from 0; None where it names nothing that stands there."""
    try:
        documents = [each for each in read_all(text) if each.root is not None]
        root = documents[number].root
        assert isinstance(root, Table)
        return _refused(message, source, text, root, base, overrides)
    except (UnreadableError, FieldError, IndexError):  # it has changed since; what is wrong is told as it is
        return None


def refused_in_values(
    message: str, source: str, document: Mapping[str, Any], *, base: Path | None, overrides: Mapping[str, Any]
) -> JobFileError | None:
    """The same for a job from plain values, which has no lines."""
    try:
        root = node_of(document)
        assert isinstance(root, Table)
        return _refused(message, source, "", root, base, overrides)
    except FieldError:
        return None


def _refused(
    message: str, source: str, text: str, root: Table, base: Path | None, overrides: Mapping[str, Any]
) -> JobFileError | None:
    for key, value in overrides.items():
        root = _replaced(root, key, value)
    from muster.jobfile.checking import builder_of  # noqa: PLC0415 - only where a job is refused

    found = list(_problems(message.splitlines(), root, builder_of(root, base)))
    return JobFileError(source, found, text) if any(problem.field for problem in found) else None


def _problems(lines: Sequence[str], root: Table, builder: "Builder") -> Iterator[Problem]:
    for line in lines:
        match = _REFUSED.fullmatch(line)
        path = () if match is None else _path(match["path"])
        if match is None or not builder.knows(str(path[0])):
            yield Problem(line=0, column=0, field="", message=line)
        else:
            yield located(root, builder.where(path), FieldError(match["message"]))


def _path(text: str) -> Loc:
    return tuple(int(number) if number else name or quoted for name, number, quoted in _PART.findall(text))
