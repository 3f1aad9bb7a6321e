"""Code that a job brings along: a folder of the client, which is a content tree of the depot once it was sent."""

from dataclasses import dataclass

CODE_DIRECTORY = "/muster/code"
"""Where containers find it."""

CODE_DIRECTORY_VARIABLE = "MUSTER_CODE_DIR"
"""The variable that tells user code where it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCode:
    """The folder that each execution of a role gets a copy of; one of both is said."""

    folder: str = ""
    """Where the client has it; only until it was sent."""
    tree: str = ""
    """SHA-256 of its content tree; empty: not sent yet."""
    size: int = 0
    """Bytes of the canonical form of the tree."""
