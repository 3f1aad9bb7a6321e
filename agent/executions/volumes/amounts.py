"""How much lies in a directory, and how that is said."""

import os
import stat
from pathlib import Path

_BLOCK = 512
_LOOKED_INTO = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def size_words(size: int) -> str:
    """Bytes for people: `3.2 GiB`."""
    unit = next((number for number in (3, 2) if size >= 1 << 10 * number), 1)
    return f"{size / (1 << 10 * unit):.1f} {('KiB', 'MiB', 'GiB')[unit - 1]}"


def bytes_in(directory: Path) -> int:
    """Bytes of disk below a directory, as far as the agent may look; links are not followed. Blocks."""
    total = 0
    left = [str(directory)]
    while left:
        above = left.pop()
        try:
            descriptor = os.open(above, _LOOKED_INTO)
        except OSError:
            continue  # it is gone by now, a link in its place, or closed to the agent
        try:
            with os.scandir(descriptor) as entries:
                for entry in entries:
                    found = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(found.st_mode):
                        left.append(f"{above}/{entry.name}")
                        total += found.st_blocks * _BLOCK
                    else:
                        total += found.st_blocks * _BLOCK // max(1, found.st_nlink)
        except OSError:
            continue  # user code removes files meanwhile
        finally:
            os.close(descriptor)
    return total
