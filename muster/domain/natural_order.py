"""The order in which people expect names with numbers: node-2 before node-10."""

import re
from functools import lru_cache


@lru_cache(maxsize=100_000)
def natural(name: str) -> tuple[tuple[int, str], ...]:
    """A sort key that puts node-2 before node-10."""
    return tuple((int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name))
