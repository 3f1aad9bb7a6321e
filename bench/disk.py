"""What kind of file system the benchmark's programs have their files on."""

import os
from pathlib import Path

JOURNALS = Path("/proc/fs/jbd2")
MOUNTS = Path("/proc/self/mountinfo")


def file_system(path: Path) -> str:
    """Like `ext4` or `ext4 without a journal`; `unknown` where the kernel does not say.

    On ext4 without a journal making a file was found to cost up to ten times as much at one time as at another
    (docs/performance.md). The cause is `recently_deleted` in the kernel's fs/ext4/ialloc.c: only there are inodes that
    were given back in the last minutes looked at, and left alone.
    """
    number = os.stat(path).st_dev  # noqa: PTH116 - as mountinfo has it
    device = f"{os.major(number)}:{os.minor(number)}"
    kind = next((kind for known, kind in map(mounted, MOUNTS.read_text().splitlines()) if known == device), "unknown")
    if kind == "ext4" and not any(JOURNALS.glob(f"{Path('/sys/dev/block', device).resolve().name}-*")):
        return "ext4 without a journal"
    return kind


def mounted(line: str) -> tuple[str, str]:
    """Device and kind of a line of mountinfo: proc_pid_mountinfo(5)."""
    place, _, origin = line.partition(" - ")
    return place.split()[2], origin.split()[0]
