"""Files of the agent that are damaged: they are kept for people, apart from those that are used."""

import shutil
from contextlib import suppress
from pathlib import Path

DIRECTORY = "damaged"
"""Name of the directory in the agent's state directory."""


def put_aside(file: Path, state: Path, owner: str) -> Path:
    """Keep a copy of a damaged file, named after whose it is; where it lies then, or would on a disk with space."""
    kept = state / DIRECTORY / f"{owner}-{file.name}"
    with suppress(OSError):
        kept.parent.mkdir(mode=0o700, exist_ok=True)
        shutil.copyfile(file, kept)
        kept.chmod(0o600)
    return kept
