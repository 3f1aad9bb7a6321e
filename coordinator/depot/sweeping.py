"""What the depot removes: what no job names, once whoever sent it has had time to say so.

All trees that jobs name are read first, and then all objects are looked at. Nothing is removed before the last tree was
read. A sweep that ends early, or is killed, has removed only what nobody names.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Lock

from coordinator.depot.messages import DepotHolds, DepotNames, DepotSwept
from muster.domain.data.digest import is_digest
from muster.domain.data.tree import LARGEST_TREE_FORM, ContentTree, MalformedTreeError, read_content_tree
from muster.transfer.objects import ObjectFiles

log = logging.getLogger(__name__)

UNNAMED_KEPT = timedelta(hours=24)
"""How long an object is kept that no record names, and the beginning of one that nobody goes on sending."""

NAMES_COUNT_FOR = timedelta(hours=12)
"""Time after which names count no more; a job that is submitted meanwhile has had its tree kept for longer."""

_KEPT_FOR = timedelta(hours=1)
"""Time in which a tree that was kept is not looked at again; far less than unnamed objects are kept."""

_LOOKED_AT = 256
"""Steps in which all objects are looked at: one for each first byte of a digest."""


def unnamed(there: Iterable[tuple[str, datetime]], named: AbstractSet[str], now: datetime) -> tuple[str, ...]:
    """The objects that go, of those that are there since some time; `named` are those that records name."""
    return tuple(digest for digest, since in there if digest not in named and now - since >= UNNAMED_KEPT)


class NamesOfTrees:
    """The trees that jobs name, while they are told line by line."""

    def __init__(self) -> None:
        self._told: dict[str, set[str]] = {}
        self._count = 0

    def take(self, names: DepotNames) -> None:
        """Take in a line."""
        self._told.setdefault(names.project, set()).update(filter(is_digest, names.trees))
        self._count += len(names.trees)

    def all(self, count: int) -> Mapping[str, AbstractSet[str]] | None:
        """Trees by project; None where other than so many were told, as then some are not known."""
        return self._told if count == self._count else None


@dataclass(kw_only=True)
class _Named:
    """What the trees of a project list, and what of it was found."""

    digests: set[str] = field(default_factory=set)
    trees: int = 0
    objects: int = 0
    bytes: int = 0


@dataclass(kw_only=True)
class Sweep:
    """One look at all objects; `steps` are small, and whoever does them may stop between any two."""

    objects: ObjectFiles
    names: Mapping[str, AbstractSet[str]]
    """Trees by project."""
    now: Callable[[], datetime]
    outcome: DepotSwept | None = None
    """What came of it; None: it is not done."""
    _named: dict[str, _Named] = field(default_factory=dict)

    def steps(self) -> Iterator[None]:
        """Read a tree, or look at a part of the objects, in each step. Raises OSError, and then nothing more goes."""
        begun = self.now()
        for project in sorted(self.names):
            mine = self._named[project] = _Named()
            for tree in sorted(self.names[project]):
                listed = _listed(self.objects, tree)
                mine.digests |= listed
                mine.trees += bool(listed)
                yield
        counts = _Counts()
        for number in range(_LOOKED_AT):
            if self.now() - begun >= NAMES_COUNT_FOR:
                log.warning("the look for what can be removed took too long, and begins anew")
                return
            self._look(number, counts)
            yield
        self.outcome = counts.outcome()

    @property
    def holds(self) -> tuple[DepotHolds, ...]:
        """What the jobs of each project name, by name; whole once the steps are done."""
        return tuple(
            DepotHolds(project=project, trees=each.trees, objects=each.objects, bytes=each.bytes)
            for project, each in self._named.items()
        )

    @property
    def named(self) -> Mapping[str, tuple[int, AbstractSet[str]]]:
        """Bytes and digests that the jobs of each project name; whole once the steps are done."""
        return {project: (each.bytes, each.digests) for project, each in self._named.items()}

    def _look(self, number: int, counts: "_Counts") -> None:
        now = self.now()
        there = dict(self.objects.among(number))
        since = {digest: datetime.fromtimestamp(found.st_mtime, now.tzinfo) for digest, found in there.items()}
        named = {digest for digest in there if self._count(digest, there[digest].st_size)}
        for digest in unnamed(since.items(), named, now):
            gone = self.objects.remove_unused(digest, (now - UNNAMED_KEPT).timestamp())
            if gone is not None:
                counts.removed += 1
                counts.removed_bytes += gone
                del there[digest]
        for digest, found in there.items():
            counts.left += 1
            counts.left_bytes += found.st_size
            if digest not in named:
                counts.unnamed += 1
                counts.unnamed_bytes += found.st_size

    def _count(self, digest: str, size: int) -> bool:
        """Whether some project names an object; it counts for each that does."""
        projects = [each for each in self._named.values() if digest in each.digests]
        for each in projects:
            each.objects += 1
            each.bytes += size
        return bool(projects)


@dataclass(kw_only=True)
class _Counts:
    """What was found so far."""

    left: int = 0
    left_bytes: int = 0
    unnamed: int = 0
    unnamed_bytes: int = 0
    removed: int = 0
    removed_bytes: int = 0

    def outcome(self) -> DepotSwept:
        return DepotSwept(
            objects=self.left,
            bytes=self.left_bytes,
            unnamed_objects=self.unnamed,
            unnamed_bytes=self.unnamed_bytes,
            removed_objects=self.removed,
            removed_bytes=self.removed_bytes,
        )


class KeptTrees:
    """Trees that were kept lately, of which no object goes before long; any thread may ask."""

    def __init__(self, objects: ObjectFiles, clock: Callable[[], datetime]) -> None:
        self._objects = objects
        self._clock = clock
        self._kept: dict[str, datetime] = {}
        self._lock = Lock()

    def keep(self, trees: Iterable[str]) -> tuple[str, ...]:
        """Do what `kept_trees` does, for those that were not kept lately. May block. Raises OSError."""
        now = self._clock()
        with self._lock:
            self._kept = {tree: at for tree, at in self._kept.items() if now - at < _KEPT_FOR}
            asked = [tree for tree in trees if tree not in self._kept]
        missing = kept_trees(self._objects, asked)
        with self._lock:
            self._kept |= dict.fromkeys(set(asked).difference(missing), now)
        return missing


def kept_trees(objects: ObjectFiles, trees: Iterable[str]) -> tuple[str, ...]:
    """Have trees count as used now, with all that they list; those that are not here, or not whole. Raises OSError."""
    return tuple(tree for tree in trees if not _keep(objects, tree))


def _keep(objects: ObjectFiles, tree: str) -> bool:
    size = objects.use(tree) if is_digest(tree) else None
    read = None if size is None else _read_tree(objects, tree, size)
    return read is not None and all(objects.use(each.digest) is not None for each in read.objects)


def _listed(objects: ObjectFiles, tree: str) -> AbstractSet[str]:
    """A tree and all that it lists; nothing where it is not here."""
    size = objects.size(tree)
    if size is None:
        return frozenset()
    read = _read_tree(objects, tree, size)
    return {tree} if read is None else {tree, *(each.digest for each in read.objects)}


def _read_tree(objects: ObjectFiles, tree: str, size: int) -> ContentTree | None:
    """A tree that is here; None: the object is no tree."""
    if size > LARGEST_TREE_FORM:
        return None
    try:
        return read_content_tree(b"".join(objects.read(tree, 0, size)))
    except MalformedTreeError:
        return None
