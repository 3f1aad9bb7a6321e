"""Listings of trees without what their rules leave out."""

from dataclasses import replace

from muster.client.files.tree import EntryKind, TreeEntry, TreeListing, parent_of
from muster.transfer.ignore_rules import IgnoreRules


def without_ignored(listing: TreeListing, rules: IgnoreRules) -> TreeListing:
    """The listing without what is left out, and without what stands below that."""
    kept: dict[str, TreeEntry] = {}
    holding: set[str] = set()
    for path, each in listing.entries.items():
        parent = parent_of(path)
        is_directory = each.kind is EntryKind.DIRECTORY
        if (parent and parent not in kept) or rules.ignores(path, directory=is_directory):
            above = parent
            while above and above not in holding:
                holding.add(above)
                above = parent_of(above)
        else:
            kept[path] = each
    troubles = {
        path: why
        for path, why in listing.troubles.items()
        if not path or path in kept or (parent_of(path) in kept and not rules.ignores(path, directory=True))
    }
    return replace(listing, entries=kept, troubles=troubles, holding_ignored=frozenset(holding))
