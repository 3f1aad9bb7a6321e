"""What goes along with a job from a client's folder: how large it may be, and the way to the depot."""

from dataclasses import dataclass, field

from muster.domain.data.code import JobCode
from muster.domain.quantity import counted, size_text

CODE_LIMIT = 500 * 1024 * 1024
"""Bytes of all files of a folder that is uploaded as code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DepotPass:
    """What opens the depot to somebody."""

    depot: str
    """HOST:PORT; an empty host is the one at which the coordinator was reached."""
    ticket: str = field(repr=False)
    allowed: int = 0
    """Bytes that may be sent with it; 0: it opens what is fetched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodePass:
    """The code of an execution, and the way to it."""

    code: JobCode
    """What is known of it; without a tree nobody has fetched it from its repository yet."""
    depot: DepotPass | None
    """What opens the depot to fetch it, or to put it there; None: another node fetches it from its repository."""

    @property
    def is_to_be_fetched(self) -> bool:
        """Whether whoever is told this fetches it from its repository."""
        return self.code.is_awaited and self.depot is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadedFolder:
    """A folder that is in the depot."""

    tree: str
    """SHA-256 of its content tree, by which jobs name it."""
    size: int
    """Bytes of the canonical form of the tree."""
    files: int
    """Files and links in it."""
    bytes: int
    """Bytes of all its files."""
    new: int
    """Files that the depot did not have."""
    sent: int
    """Bytes that were sent."""

    @property
    def sentence(self) -> str:
        """What it holds and how much of it was sent, for people."""
        return (
            f"code {counted(self.files, 'file')}, {size_text(self.bytes)}: {self.new} new, {size_text(self.sent)} sent"
        )
