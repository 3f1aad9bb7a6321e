"""Inputs that a node has for an execution."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldFile:
    """A file of an input."""

    path: str
    """Below the directory of the input."""
    size: int
    sha256: str
    uri: str
    """Where it comes from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldInput:
    """An input of an execution on this node."""

    directory: Path
    """Where its files lie."""
    files: tuple[HeldFile, ...]
