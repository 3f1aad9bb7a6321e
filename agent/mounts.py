"""What is mounted where, as `/proc/self/mountinfo` tells it. Format: proc_pid_mountinfo(5)."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class KernelMount(NamedTuple):
    """One line of it."""

    device: str
    """The numbers of the file system: `8:1`."""
    inside: str
    """What of the file system is mounted; `/` for all of it."""
    root: Path
    """Where it is mounted."""
    kind: str
    """What the kernel calls the file system: `tmpfs`."""
    options: frozenset[str]
    """Options of the file system itself."""


def mounts_in(mountinfo: str) -> Iterator[KernelMount]:
    """Every mount that the text tells; a line that is none is passed."""
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) > 4 and kind:  # noqa: PLR2004 - as the format has it
            yield KernelMount(fields[2], fields[3], Path(fields[4]), kind[0], frozenset(",".join(kind[2:]).split(",")))
