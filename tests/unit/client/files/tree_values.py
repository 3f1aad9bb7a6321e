"""Trees in memory, for tests of plans: listed, and changed as a plan says, as strictly as a file system does it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from muster.client.files.plan import TreePlan
from muster.client.files.tree import EntryKind, TreeEntry, TreeListing, parent_of

ROOT = TreeEntry(path="", kind=EntryKind.DIRECTORY, mode=0o755)


def file(path: str, *, size: int = 1, changed: int = 1, mode: int = 0o644) -> TreeEntry:
    return TreeEntry(path=path, kind=EntryKind.FILE, mode=mode, size=size, changed_ns=changed * 10**9)


def directory(path: str, mode: int = 0o755) -> TreeEntry:
    return TreeEntry(path=path, kind=EntryKind.DIRECTORY, mode=mode)


def link(path: str, target: str) -> TreeEntry:
    return TreeEntry(path=path, kind=EntryKind.LINK, mode=0o777, target=target)


def listing(*entries: TreeEntry, troubles: Mapping[str, str] | None = None) -> TreeListing:
    return TreeListing(root=ROOT, entries={each.path: each for each in entries}, troubles=troubles or {})


@dataclass(slots=True, kw_only=True)
class MemoryTree:
    """A tree that refuses what a file system would refuse."""

    entries: dict[str, TreeEntry] = field(default_factory=dict)

    def listing(self) -> TreeListing:
        in_order = sorted(self.entries.values(), key=lambda each: (each.path.count("/"), each.path))
        return listing(*in_order)

    def carry_out(self, plan: TreePlan) -> None:
        assert not plan.doubts
        assert not plan.clashes
        for each in plan.cleared:
            self.remove(each.path)
        for each in plan.directories:
            assert each.path not in self.entries
            self.put(each)
        for each in (*plan.files, *plan.links):
            there = self.entries.get(each.path)
            assert there is None or there.kind is not EntryKind.DIRECTORY
            self.put(each)
        for each in plan.adjusted:
            assert self.entries[each.path].kind is EntryKind.FILE
            self.put(each)
        for each in plan.removed:
            self.remove(each.path)
        for each in plan.finished:
            if each.path:
                self.put(replace(self.entries[each.path], mode=each.mode))

    def put(self, entry: TreeEntry) -> None:
        parent = parent_of(entry.path)
        assert not parent or self.entries[parent].kind is EntryKind.DIRECTORY
        self.entries[entry.path] = entry

    def remove(self, path: str) -> None:
        assert not any(each.startswith(f"{path}/") for each in self.entries)
        del self.entries[path]


_leaf = st.one_of(
    st.builds(
        lambda size, changed, mode: file("x", size=size, changed=changed, mode=mode),
        st.integers(0, 2),
        st.integers(1, 4),
        st.sampled_from([0o644, 0o755]),
    ),
    st.sampled_from([link("x", "a"), link("x", "b")]),
)
_node: st.SearchStrategy[object] = st.recursive(
    _leaf, lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3), max_leaves=8
)


def _flat(inside: Mapping[str, object], above: str = "") -> dict[str, TreeEntry]:
    found: dict[str, TreeEntry] = {}
    for name, what in inside.items():
        path = f"{above}{name}"
        if isinstance(what, TreeEntry):
            found[path] = replace(what, path=path)
        elif isinstance(what, Mapping):
            found[path] = directory(path)
            found |= _flat(what, f"{path}/")
    return found


trees = st.dictionaries(st.sampled_from("abcd"), _node, max_size=4).map(
    lambda inside: MemoryTree(entries=_flat(inside))
)
"""Trees with a few names, so that two of them have much in common and much apart."""
