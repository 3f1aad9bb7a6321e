"""Trees of files as values: what is where, below a directory that is not named. Names of others are checked here."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from stat import S_ISDIR, S_ISLNK, S_ISREG

DEEPEST_TREE = 200
"""Directories above an entry, below that of the tree."""

TOO_DEEP = "it lies too deep"
"""Why a directory below so many was not looked at."""

LONGEST_TREE_PATH = 4095
"""Bytes of a path, as Linux has it."""

LARGEST_TREE = 1_000_000
"""Entries of a tree."""

KEPT_MODE = 0o777
"""What of a mode is carried over: whoever runs a program has no other rights because of where it came from."""

_LONGEST_NAME = 255
_LEFTOVER = re.compile(r"\..*\.muster-[0-9a-f]{8}", re.DOTALL)


class EntryKind(StrEnum):
    """What stands at a path."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    OTHER = "other"  #: a device, a socket or a pipe, which is not copied


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeEntry:
    """One file, directory or link."""

    path: str
    """Relative to the tree; bytes that are no UTF-8 are lone surrogates. Empty: what the tree itself is."""
    kind: EntryKind
    mode: int = 0o644
    size: int = 0
    changed_ns: int = 0
    """The time of the last change, in ns since 1970."""
    target: str = ""
    """Where a link leads."""

    @property
    def changed(self) -> int:
        """Seconds since 1970: SFTP carries no more."""
        return self.changed_ns // 1_000_000_000


class InvalidTreeError(ValueError):
    """The other side tells of a tree that cannot be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeListing:
    """All that is in a tree; directories come before what is in them."""

    root: TreeEntry
    """What stands at the path of the tree itself."""
    entries: Mapping[str, TreeEntry] = field(default_factory=dict)
    """Entries by path, without the root."""
    troubles: Mapping[str, str] = field(default_factory=dict)
    """Why something could not be looked at, by path."""
    holding_ignored: frozenset[str] = frozenset()
    """Directories with something below them that is left out of the listing."""


def listing_of(told: Iterable[TreeEntry], troubles: Mapping[str, str]) -> TreeListing:
    """A listing from what another side tells. Raises InvalidTreeError for names that lead anywhere else.

    The first entry is the root. Each other one stands in a directory that was told before it; so no path leads
    through a link.
    """
    rest = iter(told)
    root = next(rest, None)
    if root is None or root.path:
        raise InvalidTreeError("a list of files does not begin with what is listed")
    entries: dict[str, TreeEntry] = {}
    for each in rest:
        refuse_bad_path(each.path)
        parent = parent_of(each.path)
        above = entries.get(parent) if parent else root
        if above is None or above.kind is not EntryKind.DIRECTORY:
            raise InvalidTreeError(f"{each.path!r} stands in no directory")
        if each.path in entries:
            raise InvalidTreeError(f"{each.path!r} is told twice")
        if (
            each.size < 0
            or len(each.target.encode("utf-8", "surrogateescape")) > LONGEST_TREE_PATH
            or "\0" in each.target
        ):
            raise InvalidTreeError(f"what is told of {each.path!r} cannot be")
        if len(entries) >= LARGEST_TREE:
            raise InvalidTreeError(f"more than {LARGEST_TREE} files are too many at once; copy parts of the directory")
        entries[each.path] = each
    return TreeListing(root=root, entries=entries, troubles=troubles)


def refuse_bad_path(path: str) -> None:
    """Raise InvalidTreeError for a relative path that is empty, leads out of its tree, or is longer than can be."""
    names = path.split("/")
    if len(names) > DEEPEST_TREE + 1:
        raise InvalidTreeError(f"a file lies deeper than {DEEPEST_TREE} directories")
    raw = path.encode("utf-8", "surrogateescape")
    if len(raw) > LONGEST_TREE_PATH:
        raise InvalidTreeError("a path is longer than a path can be")
    for name in names:
        if name in {"", ".", ".."} or "\0" in name or len(name.encode("utf-8", "surrogateescape")) > _LONGEST_NAME:
            raise InvalidTreeError(f"{path!r} is no path within a directory")


def parent_of(path: str) -> str:
    """The directory of a relative path; empty: that of the tree."""
    return path.rpartition("/")[0]


def leads_out(link: TreeEntry) -> bool:
    """Whether a link may lead out of its tree: its target is absolute, or goes up too far.

    Up it may go only first, where what is above are directories: behind another link `..` is anywhere.
    """
    names = [name for name in link.target.split("/") if name not in {"", "."}]
    ups = next((place for place, name in enumerate(names) if name != ".."), len(names))
    return link.target.startswith("/") or not names or ups > link.path.count("/") or ".." in names[ups:]


def beside_name(name: str, token: str) -> str:
    """The name of a file while it is written: beside the place that it takes in the end, and no longer than can be."""
    ending = f".muster-{token}"
    raw = name.encode("utf-8", "surrogateescape")[: _LONGEST_NAME - len(ending) - 1]
    return f".{raw.decode('utf-8', 'surrogateescape')}{ending}"


def is_leftover(name: str) -> bool:
    """Whether a name is that of a file that was being written."""
    return _LEFTOVER.fullmatch(name) is not None


def kind_of(mode: int) -> EntryKind:
    """The kind that the bits of a mode say."""
    if S_ISREG(mode):
        return EntryKind.FILE
    if S_ISDIR(mode):
        return EntryKind.DIRECTORY
    return EntryKind.LINK if S_ISLNK(mode) else EntryKind.OTHER
