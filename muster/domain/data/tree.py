"""Content trees: files and links below a directory, each file named by what it holds, all together by one digest.

The canonical form has a JSON array for each entry, on a line of its own, in the order of the bytes of the paths:

    ["bin/run","x",120,"5994471a…"]
    ["data/latest","l",0,"v2"]
    ["train.py","-",4096,"ca978112…"]

The second field says what it is: a file, a file that may be run, or a link. The last one is the SHA-256 of the file, or
where the link leads. Owners, times, other modes and empty directories are not kept: the same sources are the same tree.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from json.encoder import encode_basestring

from muster.domain.data.digest import is_digest

LARGEST_CONTENT_TREE = 1_000_000
"""Entries of a content tree."""

LONGEST_CONTENT_PATH = 4095
"""Bytes of a path in a content tree."""

LARGEST_TREE_FORM = 64 * 1024 * 1024
"""Bytes of the canonical form of a content tree."""

LARGEST_CONTENT = 1 << 62
"""Bytes of one file, which no disk has."""

_LONGEST_NAME = 255
_NO_NAMES = frozenset({"", ".", ".."})
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_FIELDS = 4


class ContentKind(StrEnum):
    """What stands at a path of a content tree, as its canonical form says it."""

    FILE = "-"
    PROGRAM = "x"  #: a file that may be run
    LINK = "l"


_KINDS: Mapping[str, ContentKind] = {each.value: each for each in ContentKind}


class MalformedTreeError(ValueError):
    """Something is no content tree; says where."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentEntry:
    """One file or link of a content tree."""

    path: str
    kind: ContentKind
    size: int = 0
    """Bytes of a file; 0 for a link."""
    content: str
    """SHA-256 of a file, or where a link leads."""

    @property
    def is_link(self) -> bool:
        """Whether nothing of it is fetched."""
        return self.kind is ContentKind.LINK


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentObject:
    """What one or more files hold."""

    digest: str
    size: int


@dataclass(frozen=True, slots=True)
class ContentTree:
    """A content tree; made by `content_tree` and `read_content_tree`, which check it."""

    entries: tuple[ContentEntry, ...] = ()

    @property
    def form(self) -> bytes:
        """The canonical form."""
        return b"".join(_line(each) for each in self.entries)

    @property
    def digest(self) -> str:
        """The name of the tree: SHA-256 of its canonical form."""
        return tree_name(self.form)

    @property
    def size(self) -> int:
        """Bytes of all files, also of those that hold the same."""
        return sum(each.size for each in self.entries)

    @property
    def objects(self) -> tuple[ContentObject, ...]:
        """All that must be fetched, each content once, in the order of the first paths that have it."""
        found: dict[str, ContentObject] = {}
        for each in self.entries:
            if not each.is_link:
                found.setdefault(each.content, ContentObject(digest=each.content, size=each.size))
        return tuple(found.values())


def tree_name(form: bytes) -> str:
    """The name of the tree with this canonical form."""
    return sha256(form).hexdigest()


def content_tree(entries: Iterable[ContentEntry]) -> ContentTree:
    """The tree of these entries, whatever their order. Raises MalformedTreeError."""
    ordered = sorted(entries, key=lambda each: each.path.encode("utf-8", "surrogatepass"))
    _refuse_malformed(ordered)
    return ContentTree(tuple(ordered))


def read_content_tree(form: bytes) -> ContentTree:
    """The tree with this canonical form. Raises MalformedTreeError for every other text.

    Another way to write the same entries is refused, too: a tree has one name.
    """
    if len(form) > LARGEST_TREE_FORM:
        raise MalformedTreeError(f"the tree is written in {len(form)} bytes; at most {LARGEST_TREE_FORM} are taken")
    entries = list(_read(form))
    _refuse_malformed(entries)
    tree = ContentTree(tuple(entries))
    if tree.form != form:
        raise MalformedTreeError("the tree is not in its canonical form")
    return tree


def refuse_bad_content_path(path: str) -> None:
    """Raise MalformedTreeError for a path that leads out of its tree, that no file can have, or that hides its end."""
    try:
        raw = path.encode()
    except UnicodeEncodeError:
        raise MalformedTreeError(f"{path!r} is no UTF-8: rename it") from None
    if len(raw) > LONGEST_CONTENT_PATH:
        raise MalformedTreeError(f"{path[:80]!r}… has {len(raw)} bytes; a path has at most {LONGEST_CONTENT_PATH}")
    if _CONTROL.search(path):
        raise MalformedTreeError(f"{path!r} has control characters: rename it")
    names = path.split("/")
    if not _NO_NAMES.isdisjoint(names):
        raise MalformedTreeError(f"{path!r} is no path within a directory")
    if len(raw) > _LONGEST_NAME and any(len(name.encode()) > _LONGEST_NAME for name in names):
        raise MalformedTreeError(f"{path[:80]!r}: a name has at most {_LONGEST_NAME} bytes")


def link_leads_out(path: str, target: str) -> bool:
    """Whether a link may lead out of its tree: its target is absolute, or goes up too far.

    It may go up only first, where all that is above are directories: behind another link `..` is anywhere.
    """
    names = [name for name in target.split("/") if name not in {"", "."}]
    ups = next((place for place, name in enumerate(names) if name != ".."), len(names))
    return target.startswith("/") or not names or ups > path.count("/") or ".." in names[ups:]


def _line(entry: ContentEntry) -> bytes:
    """The same as `json.dumps` of the array, which takes five times as long."""
    path, content = encode_basestring(entry.path), encode_basestring(entry.content)
    return f'[{path},"{entry.kind.value}",{entry.size},{content}]\n'.encode()


def _read(form: bytes) -> Iterator[ContentEntry]:
    lines = form.split(b"\n")
    if lines.pop():
        raise MalformedTreeError("the last line of the tree is not whole")
    if len(lines) > LARGEST_CONTENT_TREE:
        raise MalformedTreeError(_too_many(len(lines)))
    for number, said in enumerate(_said(lines), start=1):
        entry = _entry(said)
        if entry is None:
            raise MalformedTreeError(f"line {number} of the tree is no [path, kind, size, content]")
        yield entry


def _said(lines: Sequence[bytes]) -> Sequence[object]:
    """What each line says, read at once: line by line takes seven times as long."""
    try:
        said = json.loads(b"[%s]" % b",".join(lines))
    except (ValueError, RecursionError):
        said = None
    if isinstance(said, list) and len(said) == len(lines):
        return said
    return [_said_alone(number, line) for number, line in enumerate(lines, start=1)]


def _said_alone(number: int, line: bytes) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        raise MalformedTreeError(f"line {number} of the tree is no JSON") from None


def _entry(said: object) -> ContentEntry | None:
    if not isinstance(said, list) or len(said) != _FIELDS:
        return None
    path, kind, size, content = said
    if not isinstance(path, str) or not isinstance(content, str) or type(size) is not int:
        return None
    known = _KINDS.get(kind) if isinstance(kind, str) else None
    return None if known is None else ContentEntry(path=path, kind=known, size=size, content=content)


def _refuse_malformed(entries: Sequence[ContentEntry]) -> None:
    """Raise MalformedTreeError for entries in order that cannot stand below one directory."""
    if len(entries) > LARGEST_CONTENT_TREE:
        raise MalformedTreeError(_too_many(len(entries)))
    paths: set[str] = set()
    sizes: dict[str, int] = {}
    before, directory = b"", ""
    for each in entries:
        refuse_bad_content_path(each.path)
        raw = each.path.encode()
        if raw <= before:
            raise MalformedTreeError(f"{each.path!r} stands there twice, or out of order")
        before = raw
        # What stands above comes before what is in it; all above is that of the one before in the same directory.
        if (within := each.path.rpartition("/")[0]) != directory and any(above in paths for above in _above(each.path)):
            raise MalformedTreeError(f"{each.path!r} lies in something that is no directory")
        directory = within
        paths.add(each.path)
        _refuse_bad_content(each)
        if not each.is_link and sizes.setdefault(each.content, each.size) != each.size:
            raise MalformedTreeError(f"{each.path!r} is said to have two sizes")


def _refuse_bad_content(entry: ContentEntry) -> None:
    if not entry.is_link:
        if not is_digest(entry.content) or not 0 <= entry.size < LARGEST_CONTENT:
            raise MalformedTreeError(f"{entry.path!r} has no size, or no SHA-256")
        return
    target = entry.content
    try:
        long = len(target.encode()) > LONGEST_CONTENT_PATH
    except UnicodeEncodeError:
        raise MalformedTreeError(f"{entry.path!r} leads to what is no UTF-8") from None
    if entry.size or long or _CONTROL.search(target):
        raise MalformedTreeError(f"{entry.path!r} leads to what is no path")
    if link_leads_out(entry.path, target):
        raise MalformedTreeError(f"{entry.path!r} leads to {target!r}, which is not in the tree")


def _above(path: str) -> Iterator[str]:
    at = path.find("/")
    while at >= 0:
        yield path[:at]
        at = path.find("/", at + 1)


def _too_many(count: int) -> str:
    return f"the tree has {count} entries; at most {LARGEST_CONTENT_TREE} are taken"
