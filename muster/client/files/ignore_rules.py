"""Which files of a tree are left out, by rules as git counts them; the only module that knows the library."""

from collections.abc import Sequence
from dataclasses import replace

import pathspec

from muster.client.files.transfer_error import FileTransferError
from muster.client.files.tree import EntryKind, TreeEntry, TreeListing, parent_of

IGNORE_FILES = (".gitignore", ".musterignore")
"""Files with rules, the later one above the earlier one."""

LARGEST_IGNORE_FILE = 1024 * 1024
"""Bytes of a file with rules."""

_ALWAYS = (".git/",)
"""Rules below all others; `!.git/` in `.musterignore` turns it around."""


class IgnoreRules:
    """Rules of the directories of one tree, which are learned on a walk from above, and those of a command line."""

    def __init__(self, excluded: Sequence[str] = ()) -> None:
        """`excluded` are patterns above all files with rules. Raises FileTransferError for one that cannot be read."""
        self._excluded = _read(excluded, "--exclude")
        self._always = _read(_ALWAYS, "")
        self._of_directory: dict[str, pathspec.GitIgnoreSpec] = {}

    def learn(self, directory: str, lines: Sequence[str]) -> None:
        """Take the rules that stand in a directory; its path is relative, that of the tree is empty."""
        self._of_directory[directory] = _read(lines, f"{directory or '.'}/{IGNORE_FILES[0]}")

    def ignores(self, path: str, *, directory: bool) -> bool:
        """Whether something is left out that stands in a directory which is not."""
        shown = f"{path}/" if directory else path
        decided = self._excluded.check_file(shown).include
        above = path
        while decided is None and above:
            above = parent_of(above)
            rules = self._of_directory.get(above)
            if rules is not None:
                decided = rules.check_file(shown[len(above) + 1 :] if above else shown).include
        if decided is None:
            decided = self._always.check_file(shown).include
        return bool(decided)

    def without_ignored(self, listing: TreeListing) -> TreeListing:
        """The listing without what is left out, and without what stands below that."""
        kept: dict[str, TreeEntry] = {}
        holding: set[str] = set()
        for path, each in listing.entries.items():
            parent = parent_of(path)
            is_directory = each.kind is EntryKind.DIRECTORY
            if (parent and parent not in kept) or self.ignores(path, directory=is_directory):
                above = parent
                while above and above not in holding:
                    holding.add(above)
                    above = parent_of(above)
            else:
                kept[path] = each
        troubles = {
            path: why
            for path, why in listing.troubles.items()
            if not path or path in kept or (parent_of(path) in kept and not self.ignores(path, directory=True))
        }
        return replace(listing, entries=kept, troubles=troubles, holding_ignored=frozenset(holding))


def _read(lines: Sequence[str], place: str) -> pathspec.GitIgnoreSpec:
    try:
        return pathspec.GitIgnoreSpec.from_lines(lines)
    except ValueError as error:
        raise FileTransferError(f"{place}: a rule cannot be read: {error}") from error
