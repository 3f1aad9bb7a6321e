"""YAML 1.2 as a tree in which every value knows its place and how it was written; the only reader of YAML.

The tree is built from the parser's events and not by a YAML constructor, so that a value keeps its spelling
(`NO: no`, `TIME: 22:22`, `MODE: 010`), a repeated key is seen, and a hostile file is given up early.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from io import StringIO
from typing import Any, TypeAlias

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, StringMark, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)
from ruamel.yaml.reader import ReaderError

from muster.domain import fault
from muster.domain.quoting import quote
from muster.jobfile.errors import FieldError, fault_of, lines_of

MAX_FILE_BYTES = 2**20
MAX_DEPTH = 20
MAX_NODES = 50_000
"""Values after all aliases are expanded; a large job has some hundreds."""
MAX_CHARACTERS = 2 * MAX_FILE_BYTES
"""Text after all aliases are expanded."""

Loc: TypeAlias = "tuple[str | int, ...]"
"""The way to a value: keys, and places in lists from 0."""

KEY = "[key]"
"""How pydantic marks that the key itself is wrong, and not its value."""

Atom: TypeAlias = "str | int | float | bool | None"


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands, from 1; line 0 is outside the file."""

    line: int = 0
    column: int = 0


START = Place(1, 1)
OUTSIDE = Place()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    """A single value: what it means in YAML 1.2, and as it was written."""

    value: Atom
    text: str
    at: Place = OUTSIDE


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A list."""

    items: tuple["Node", ...] = ()
    at: Place = OUTSIDE


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A map from text to values."""

    entries: Mapping[str, "Node"] = field(default_factory=dict)
    keys: Mapping[str, Place] = field(default_factory=dict)
    """Where each key stands."""
    at: Place = OUTSIDE


Node: TypeAlias = Scalar | Listing | Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """A key that stands twice in one map; the first one counts."""

    path: Loc
    at: Place
    first: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One document of a text."""

    root: Node | None
    """None: it is empty."""
    repeated: tuple[Repeated, ...]


class UnreadableError(Exception):
    """The text is not one YAML document that Muster reads; nothing of it can be used."""

    def __init__(self, message: str, at: Place = START) -> None:
        super().__init__(message)
        self.message = message
        self.at = at


def read(text: str) -> Document:
    """The only document of a text; raises UnreadableError."""
    return _composer(text).only_document()


def read_all(text: str) -> tuple[Document, ...]:
    """All documents of a text, which share its limits; raises UnreadableError."""
    return tuple(_composer(text).documents())


def atom(text: str) -> Atom:
    """What an unquoted scalar means by the core schema of YAML 1.2."""
    if text in {"", "~", "null", "Null", "NULL"}:
        return None
    if text in {"true", "True", "TRUE", "false", "False", "FALSE"}:
        return text.lower() == "true"
    if match := _INTEGER.fullmatch(text):
        return int(match[0].removeprefix("+"), {"0o": 8, "0x": 16}.get(text[:2], 10))
    if _FLOAT.fullmatch(text):
        return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    return text


# Longer integers become floats: nothing in a job needs them, and converting them takes long.
_INTEGER = re.compile(r"[-+]?[0-9]{1,30}|0o[0-7]{1,30}|0x[0-9a-fA-F]{1,30}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,5})?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")

_STANDARD = "tag:yaml.org,2002:"
_SURROGATE = re.compile("[\ud800-\udfff]")


def unfold(node: Node, leaf: Callable[[Scalar], object]) -> Any:  # noqa: ANN401 - values of any kind
    """The tree as dicts and lists, with each single value as `leaf` gives it."""
    match node:
        case Table():
            return {key: unfold(inner, leaf) for key, inner in node.entries.items()}
        case Listing():
            return [unfold(inner, leaf) for inner in node.items]
        case Scalar():
            return leaf(node)


def kind(value: object) -> str:
    """What was written, in words: `a map`, `a list`, `the number 4.5`, `"four"`, `true`, `nothing`."""
    if isinstance(value, (dict, Table)):
        return "a map"
    if isinstance(value, (list, tuple, Listing)):
        return "a list"
    written = scalar(value)
    if written.value is None:
        return "nothing"
    return quote(written.text) if isinstance(written.value, str) else written.text


def scalar(value: object) -> Scalar:
    """The single value as it was written; raises FieldError for a map or a list."""
    if isinstance(value, Scalar):
        return value
    if value is None or isinstance(value, (str, int, float)):  # a default of the models
        return Scalar(value=value, text=str(value))
    raise FieldError(f"must be a single value, not {kind(value)}")


def spell(loc: Loc) -> str:
    """The path as people write it, without the mark of a key: `roles[0].resources.gpus`, `env["A B"]`."""
    return fault.spell(tuple(part for part in loc if part != KEY))


def _composer(text: str) -> "_Composer":
    if len(text.encode(errors="replace")) > MAX_FILE_BYTES:
        raise UnreadableError(f"is larger than {MAX_FILE_BYTES // 2**10} KiB")
    return _Composer(text)


@dataclass(slots=True)
class _Size:
    nodes: int = 0
    characters: int = 0


class _Composer:
    """Builds the trees of documents from events, within limits."""

    def __init__(self, text: str) -> None:
        self._events = _events(text)
        self._anchors: dict[str, tuple[Node, _Size]] = {}
        self._size = _Size()
        self._repeated: list[Repeated] = []
        next(self._events)  # the start of the stream

    def only_document(self) -> Document:
        start = next(self._events)
        if isinstance(start, StreamEndEvent):
            return Document(root=None, repeated=())
        document = self._document(start)
        after = next(self._events)
        if not isinstance(after, StreamEndEvent):
            raise UnreadableError("holds more than one YAML document; a file describes one job", _place(after))
        return document

    def documents(self) -> Iterator[Document]:
        while not isinstance(start := next(self._events), StreamEndEvent):
            yield self._document(start)

    def _document(self, start: Event) -> Document:
        assert isinstance(start, DocumentStartEvent)
        if start.version and tuple(start.version) != (1, 2):
            raise UnreadableError("asks for another YAML than 1.2; remove the %YAML line", _place(start))
        self._anchors, self._repeated = {}, []
        root = self._node(next(self._events), START, ())
        next(self._events)  # the end of the document
        empty = root == Scalar(value=None, text="", at=root.at)
        return Document(root=None if empty else root, repeated=tuple(self._repeated))

    def _node(self, event: Event, owner: Place, path: Loc) -> Node:
        """The node that begins with `event`; `owner` is where an empty value is shown."""
        if isinstance(event, AliasEvent):
            return self._alias(event)
        assert isinstance(event, NodeEvent)
        before = _Size(self._size.nodes, self._size.characters)
        node = self._fresh(event, owner, path)
        if event.anchor is not None:
            grown = _Size(self._size.nodes - before.nodes, self._size.characters - before.characters)
            self._anchors[event.anchor] = (node, grown)
        return node

    def _fresh(self, event: NodeEvent, owner: Place, path: Loc) -> Node:
        _refuse_tag(event)
        if len(path) > MAX_DEPTH:
            raise UnreadableError(f"is nested more than {MAX_DEPTH} levels deep", _place(event))
        if isinstance(event, SequenceStartEvent):
            self._grow(1, 0, _place(event))
            return self._listing(event, path)
        if isinstance(event, MappingStartEvent):
            self._grow(1, 0, _place(event))
            return self._table(event, path)
        assert isinstance(event, ScalarEvent)
        return self._scalar(event, owner)

    def _alias(self, event: AliasEvent) -> Node:
        if event.anchor not in self._anchors:
            message = (
                f"the alias *{event.anchor} refers to nothing above it; a text that begins with * must stand in quotes"
            )
            raise UnreadableError(message, _place(event))
        node, size = self._anchors[event.anchor]
        self._grow(size.nodes, size.characters, _place(event))
        return node

    def _scalar(self, event: ScalarEvent, owner: Place) -> Scalar:
        text = _paired(event)
        self._grow(1, len(text), _place(event))
        plain = event.style is None and event.tag is None
        # The mark of an empty value is that of whatever comes next.
        return Scalar(value=atom(text) if plain else text, text=text, at=_place(event) if text or not plain else owner)

    def _listing(self, start: SequenceStartEvent, path: Loc) -> Listing:
        items: list[Node] = []
        while not isinstance(event := next(self._events), SequenceEndEvent):
            items.append(self._node(event, _place(start), (*path, len(items))))
        return Listing(items=tuple(items), at=_place(start))

    def _table(self, start: MappingStartEvent, path: Loc) -> Table:
        entries: dict[str, Node] = {}
        keys: dict[str, Place] = {}
        while not isinstance(event := next(self._events), MappingEndEvent):
            key = self._key(self._node(event, _place(start), (*path, "")), _place(event))
            value = self._node(next(self._events), key.at, (*path, key.text))
            if key.text in entries:
                self._repeated.append(Repeated(path=(*path, key.text), at=key.at, first=keys[key.text]))
            else:
                entries[key.text] = value
                keys[key.text] = key.at
        return Table(entries=entries, keys=keys, at=_place(start))

    def _key(self, node: Node, at: Place) -> Scalar:
        if not isinstance(node, Scalar) or node.text == "":
            raise UnreadableError("a key must be a word", at)
        if node.text == "<<":
            raise UnreadableError("merge keys (<<) are not part of YAML 1.2; write the keys out", at)
        return Scalar(value=node.value, text=node.text, at=at)

    def _grow(self, nodes: int, characters: int, at: Place) -> None:
        self._size.nodes += nodes
        self._size.characters += characters
        if self._size.nodes > MAX_NODES:
            raise UnreadableError(f"holds more than {MAX_NODES} values, counting what aliases repeat", at)
        if self._size.characters > MAX_CHARACTERS:
            raise UnreadableError(f"holds more than {MAX_CHARACTERS} characters, counting what aliases repeat", at)


def _events(text: str) -> Iterator[Event]:
    """The parser's events; whatever it complains about comes out as UnreadableError."""
    last = START
    try:
        for event in YAML(typ="safe", pure=True).parse(StringIO(text)):
            last = _place(event)
            yield event
    except MarkedYAMLError as error:
        message, spot = fault_of(error, lines_of(text))
        raise UnreadableError(message, Place(spot[0] + 1, spot[1] + 1) if spot else last) from error
    except ReaderError as error:
        lines = lines_of(text[: error.position])
        where = Place(len(lines), len(lines[-1]) + 1)
        raise UnreadableError(f"holds the control character U+{ord(text[error.position]):04X}", where) from error
    except (YAMLError, ValueError, OverflowError, AssertionError) as error:
        # What chr(), int() and assertions of the scanner raise for an absurd escape or version.
        raise UnreadableError("is not valid YAML from here on", last) from error


def _paired(event: ScalarEvent) -> str:
    """The text of a scalar; JSON writes large characters as two escapes, which become one character."""
    text: str = event.value
    if not _SURROGATE.search(text):
        return text
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise UnreadableError("holds half a character (a lone surrogate)", _place(event)) from None


def _refuse_tag(event: NodeEvent) -> None:
    tag = getattr(event, "tag", None)
    own = {ScalarEvent: "str", SequenceStartEvent: "seq", MappingStartEvent: "map"}.get(type(event))
    if tag is not None and tag not in {"!", f"{_STANDARD}{own}"}:
        name = f"!!{tag.removeprefix(_STANDARD)}" if tag.startswith(_STANDARD) else tag
        raise UnreadableError(f"the tag {quote(name)} is not supported; write the plain value", _place(event))


def _place(event: Event) -> Place:
    return _marked(event.start_mark)


def _marked(mark: StringMark) -> Place:
    return Place(mark.line + 1, mark.column + 1)
