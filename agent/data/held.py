"""Inputs that a node has for an execution."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldFile:
    """A file of an input."""

    path: str
    """Below the directory of the input."""
    size: int
    sha256: str
    uri: str
    """Where it comes from."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """What the job that left it says of it; empty: nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldInput:
    """An input of an execution on this node."""

    directory: Path
    """Where its files lie."""
    files: tuple[HeldFile, ...]
