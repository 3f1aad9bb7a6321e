"""Which files of a tree are left out, by rules as git counts them; the only module that knows the library."""

import os
from collections.abc import Collection, Sequence
from hashlib import sha256
from stat import S_ISREG

import pathspec

from muster.domain.errors import MusterError

IGNORE_FILES = (".gitignore", ".musterignore")
"""Files with rules, the later one above the earlier one."""

LARGEST_IGNORE_FILE = 1024 * 1024
"""Bytes of a file with rules."""

_NAME_DIGITS = 32
_ALWAYS = (".git/",)
"""Rules below all others; `!.git/` in `.musterignore` turns it around."""


class IgnoreRuleError(MusterError):
    """A rule cannot be read; says where it stands."""


class IgnoreRules:
    """Rules of the directories of one tree, which are learned on a walk from above, and those of a command line."""

    def __init__(self, excluded: Sequence[str] = ()) -> None:
        """`excluded` are patterns above all files with rules. Raises IgnoreRuleError for one that cannot be read."""
        self._excluded = _read(excluded, "--exclude")
        self._always = _read(_ALWAYS, "")
        self._of_directory: dict[str, pathspec.GitIgnoreSpec] = {}
        self._names = {"": _named("", excluded)}

    def learn(self, directory: str, lines: Sequence[str]) -> None:
        """Take the rules that stand in a directory; its path is relative, that of the tree is empty."""
        self._of_directory[directory] = _read(lines, f"{directory or '.'}/{IGNORE_FILES[0]}")
        self._names[directory] = _named(self.name(directory), lines)

    def name(self, directory: str) -> str:
        """The name of all rules that count in a directory: where it is the same, what counts is the same."""
        while (found := self._names.get(directory)) is None:
            directory = directory.rpartition("/")[0]
        return found

    def ignores(self, path: str, *, directory: bool) -> bool:
        """Whether something is left out that stands in a directory which is not."""
        shown = f"{path}/" if directory else path
        decided = self._excluded.check_file(shown).include if self._excluded else None
        above = path
        while decided is None and above:
            above = above.rpartition("/")[0]
            rules = self._of_directory.get(above)
            if rules is not None:
                decided = rules.check_file(shown[len(above) + 1 :] if above else shown).include
        if decided is None and ".git" in path:  # most paths are none of these rules' business
            decided = self._always.check_file(shown).include
        return bool(decided)


def rules_in(above: int, names: Collection[str]) -> list[str]:
    """The rules that stand in a directory that is open, in which there are these names."""
    return [line for each in IGNORE_FILES if each in names for line in _lines_of(above, each)]


def _named(above: str, lines: Sequence[str]) -> str:
    """The name of rules below others."""
    return sha256("\n".join((above, *lines)).encode("utf-8", "surrogateescape")).hexdigest()[:_NAME_DIGITS]


def _lines_of(above: int, name: str) -> list[str]:
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=above)
    except OSError:
        return []
    try:
        if not S_ISREG(os.fstat(descriptor).st_mode):
            return []
        return os.read(descriptor, LARGEST_IGNORE_FILE).decode("utf-8", "surrogateescape").split("\n")
    finally:
        os.close(descriptor)


def _read(lines: Sequence[str], place: str) -> pathspec.GitIgnoreSpec:
    try:
        return pathspec.GitIgnoreSpec.from_lines(lines)
    except ValueError as error:
        raise IgnoreRuleError(f"{place}: a rule cannot be read: {error}") from error
