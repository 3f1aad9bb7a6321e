"""What is to be done so that one tree has what another one has; decided from two listings alone."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from muster.client.files.tree import EntryKind, TreeEntry, TreeListing, is_leftover, leads_out, parent_of


class ClashKind(StrEnum):
    """Why something at the target is not replaced without a question."""

    NEWER = "newer"  #: it was changed later than what would replace it
    IN_THE_WAY = "in the way"  #: one of both is a directory, or it is a device or the like


@dataclass(frozen=True, slots=True, kw_only=True)
class Clash:
    """Something at the target that would be lost."""

    path: str
    kind: ClashKind


@dataclass(frozen=True, slots=True, kw_only=True)
class NotCopied:
    """Something of the source that does not get to the target, and why."""

    path: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """A file of the same size and another time on both sides: its content decides."""

    source: TreeEntry
    target: TreeEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRules:
    """How two trees are compared."""

    everything: bool = False
    """Whether files are sent without a look at what is at the target, as a copy is asked for."""
    delete: bool = False
    """Whether what only the target has is removed."""
    overwrite: bool = False
    """Whether what is newer or in the way at the target is replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TreePlan:
    """What is to be done, in the order of the fields."""

    cleared: tuple[TreeEntry, ...] = ()
    """Stand in the way; what is in a directory comes before it."""
    directories: tuple[TreeEntry, ...] = ()
    """Are to be made; a directory comes before what is in it."""
    files: tuple[TreeEntry, ...] = ()
    links: tuple[TreeEntry, ...] = ()
    adjusted: tuple[TreeEntry, ...] = ()
    """Files with the right content, and another mode or time."""
    removed: tuple[TreeEntry, ...] = ()
    """Only the target has them; what is in a directory comes before it."""
    finished: tuple[TreeEntry, ...] = ()
    """Directories that get their mode and time, once all that is in them is there; the deepest come first."""
    doubts: tuple[Doubt, ...] = ()
    """Are not decided yet."""
    clashes: tuple[Clash, ...] = ()
    """Nothing may be done while there is one."""
    left_out: tuple[NotCopied, ...] = ()
    """What is never copied: links that lead out of the tree, and devices."""
    unread: tuple[NotCopied, ...] = ()
    """What could not be looked at."""
    unchanged: int = 0
    """Files and links that are right as they are."""

    @property
    def size(self) -> int:
        """Bytes of all files that are sent."""
        return sum(each.size for each in self.files)

    @property
    def is_nothing(self) -> bool:
        """Whether nothing is to be done."""
        changes = (self.cleared, self.directories, self.files, self.links, self.adjusted, self.removed, self.finished)
        return not any(changes)


@dataclass(slots=True, kw_only=True)
class _Draft:
    """A plan while it grows."""

    rules: PlanRules
    target: TreeListing
    directories: list[TreeEntry] = field(default_factory=list)
    files: list[TreeEntry] = field(default_factory=list)
    links: list[TreeEntry] = field(default_factory=list)
    finished: list[TreeEntry] = field(default_factory=list)
    adjusted: list[TreeEntry] = field(default_factory=list)
    doubts: list[Doubt] = field(default_factory=list)
    clashes: list[Clash] = field(default_factory=list)
    cleared: dict[str, TreeEntry] = field(default_factory=dict)
    unchanged: int = 0

    def add_directory(self, each: TreeEntry, there: TreeEntry | None) -> None:
        if there is not None and there.kind is EntryKind.DIRECTORY:
            if each.path and (self.rules.everything or there.mode != each.mode):
                self.finished.append(each)  # what the tree itself stands in is its owner's, as a working directory is
            return
        if there is not None:
            self._clear(there)
        self.directories.append(each)
        self.finished.append(each)

    def add_link(self, each: TreeEntry, there: TreeEntry | None) -> None:
        if there is not None and there.kind is EntryKind.LINK and there.target == each.target:
            self.unchanged += 1
            return
        if self._may_replace(each, there):
            self.links.append(each)

    def add_file(self, each: TreeEntry, there: TreeEntry | None) -> None:
        if there is None or there.kind is not EntryKind.FILE or self.rules.everything or there.size != each.size:
            if self._may_replace(each, there):
                self.files.append(each)
        elif there.changed != each.changed:
            self.doubts.append(Doubt(source=each, target=there))
        elif there.mode != each.mode:
            self.adjusted.append(each)
        else:
            self.unchanged += 1

    def _may_replace(self, each: TreeEntry, there: TreeEntry | None) -> bool:
        if there is None:
            return True
        if there.kind in {EntryKind.DIRECTORY, EntryKind.OTHER}:
            self._clear(there)
        elif _is_newer(there, each, self.rules):
            self.clashes.append(Clash(path=each.path, kind=ClashKind.NEWER))
            return False
        return True

    def _clear(self, there: TreeEntry) -> None:
        if not self.rules.overwrite or there.kind is EntryKind.OTHER:
            self.clashes.append(Clash(path=there.path, kind=ClashKind.IN_THE_WAY))
            return
        self.cleared[there.path] = there
        if there.kind is EntryKind.DIRECTORY:
            inside = f"{there.path}/"
            self.cleared |= {path: each for path, each in self.target.entries.items() if path.startswith(inside)}


def plan_of(source: TreeListing, target: TreeListing | None, rules: PlanRules) -> TreePlan:
    """What makes the target like the source; the target is None where nothing stands at its path.

    No entry that is sent, and no directory that is made, stands in anything that is left out.
    """
    there = target or TreeListing(root=TreeEntry(path="", kind=EntryKind.OTHER))
    root_there = target.root if target is not None else None
    draft = _Draft(rules=rules, target=there)
    left_out: list[NotCopied] = []
    for each in (source.root, *source.entries.values()):
        at_target = there.entries.get(each.path) if each.path else root_there
        why = _left_out(each)
        if why:
            left_out.append(NotCopied(path=each.path, why=why))
        elif is_leftover(each.path.rpartition("/")[2]):
            continue
        elif each.kind is EntryKind.DIRECTORY:
            draft.add_directory(each, at_target)
        elif each.kind is EntryKind.LINK:
            draft.add_link(each, at_target)
        else:
            draft.add_file(each, at_target)
    return TreePlan(
        cleared=_deepest_first(draft.cleared.values()),
        directories=tuple(sorted(draft.directories, key=_depth)),
        files=tuple(draft.files),
        links=tuple(draft.links),
        adjusted=tuple(draft.adjusted),
        removed=_removed(source, there, draft.cleared) if rules.delete else (),
        finished=_deepest_first(draft.finished),
        doubts=tuple(draft.doubts),
        clashes=tuple(draft.clashes),
        left_out=tuple(left_out),
        unread=tuple(NotCopied(path=path, why=why) for path, why in source.troubles.items()),
        unchanged=draft.unchanged,
    )


def settled(plan: TreePlan, is_same: Callable[[str], bool], rules: PlanRules) -> TreePlan:
    """The plan without doubts; `is_same` tells for a path whether both sides have one content."""
    files, adjusted, clashes = list(plan.files), list(plan.adjusted), list(plan.clashes)
    for doubt in plan.doubts:
        if is_same(doubt.source.path):
            adjusted.append(doubt.source)
        elif _is_newer(doubt.target, doubt.source, rules):
            clashes.append(Clash(path=doubt.source.path, kind=ClashKind.NEWER))
        else:
            files.append(doubt.source)
    return replace(plan, doubts=(), files=tuple(files), adjusted=tuple(adjusted), clashes=tuple(clashes))


def _left_out(each: TreeEntry) -> str:
    if each.kind is EntryKind.OTHER:
        return "neither a file nor a directory nor a link"
    if each.kind is EntryKind.LINK and leads_out(each):
        return f"leads out of the directory, to {each.target}"
    return ""


def _is_newer(there: TreeEntry, each: TreeEntry, rules: PlanRules) -> bool:
    if rules.everything or rules.overwrite or there.kind is not EntryKind.FILE:
        return False
    return there.changed > each.changed


def _removed(source: TreeListing, target: TreeListing, cleared: dict[str, TreeEntry]) -> tuple[TreeEntry, ...]:
    """What only the target has, but not what holds ignored files or is below something that could not be read."""
    blind = frozenset(source.troubles)
    return _deepest_first(
        each
        for path, each in target.entries.items()
        if path not in source.entries
        and path not in cleared
        and path not in target.holding_ignored
        and not ("" in blind or any(above in blind for above in _above(path)))
    )


def _above(path: str) -> Iterable[str]:
    while path:
        yield path
        path = parent_of(path)


def _deepest_first(entries: Iterable[TreeEntry]) -> tuple[TreeEntry, ...]:
    return tuple(sorted(entries, key=lambda each: -_depth(each)))


def _depth(each: TreeEntry) -> int:
    return each.path.count("/") if each.path else -1
