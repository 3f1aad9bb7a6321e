"""What a tree of files does, wherever it is: on this machine or in an execution."""

from collections.abc import AsyncGenerator
from typing import Protocol

from muster.client.files.content_hash import HashedRange
from muster.client.files.tree import EntryKind, TreeEntry, TreeListing
from muster.transfer.ignore_rules import IgnoreRules


class NewFile(Protocol):
    """A file while it is written, beside the place that it takes in the end."""

    async def write(self, piece: bytes) -> None:
        """Take the next piece; it may be under way when this returns."""
        ...

    async def told(self, offset: int, length: int) -> HashedRange | None:
        """What the other side says that was written there; None: there is no other side."""
        ...

    async def finish(self, mode: int, changed: int | None) -> None:
        """Write all that was taken, with this mode and this time of the last change; None: now."""
        ...

    async def commit(self) -> None:
        """Take the place."""
        ...

    async def discard(self) -> None:
        """Leave nothing; does not raise."""
        ...


class FileTree(Protocol):
    """A directory with all that is in it, or one file. Paths are relative; the empty one is the tree itself."""

    @property
    def name(self) -> str:
        """The tree, as it was asked for."""
        ...

    def within(self, name: str) -> "FileTree":
        """The tree at a name in this one."""
        ...

    async def kind(self) -> EntryKind | None:
        """What stands at the path of the tree, behind a link, too; None: nothing."""
        ...

    async def listing(self, rules: IgnoreRules | None = None) -> TreeListing | None:
        """What is there, without what the rules leave out; None: nothing stands at the path of the tree."""
        ...

    def pieces(self, entry: TreeEntry) -> AsyncGenerator[bytes, None]:
        """The content of a file, as long as it was when it was listed."""
        ...

    async def told(self, path: str, offset: int, length: int) -> HashedRange | None:
        """What the other side says that a file holds there; None: there is no other side."""
        ...

    async def hashed(self, path: str) -> HashedRange:
        """What a file holds."""
        ...

    async def new_file(self, path: str, token: str) -> NewFile:
        """A file that takes its place, or that of another one, once it is whole."""
        ...

    async def make_directory(self, path: str) -> None:
        """Make a directory that only its owner may enter so far."""
        ...

    async def make_link(self, entry: TreeEntry, token: str) -> None:
        """Make a link, also in place of something that is no directory."""
        ...

    async def adjust(self, entry: TreeEntry, changed: int | None) -> None:
        """Give a file or a directory its mode, and a time of the last change where one is said."""
        ...

    async def remove(self, entry: TreeEntry) -> None:
        """Remove a file, a link, or an empty directory."""
        ...
