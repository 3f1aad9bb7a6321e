"""Programs that bring their Python along, for machines that have none or one that is too old; made by PyInstaller."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from muster.domain.errors import MusterError


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenPrograms:
    """All programs in one archive."""

    archive: Path
    architecture: str
    glibc: str
    """The oldest C library on which they run."""


def is_possible() -> bool:
    """Whether PyInstaller is installed here."""
    return find_spec("PyInstaller") is not None


def build(directory: Path) -> FrozenPrograms:
    """Make them for machines like this one; raises MusterError."""
    raise MusterError(f"{directory}: programs that bring their Python along cannot be made yet; use --no-frozen")
