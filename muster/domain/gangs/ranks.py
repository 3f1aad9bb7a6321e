"""Ranks as people write several of them: `0,2-3`."""

import re

MOST_NAMED_RANKS = 10_000
"""Ranks that one text may name, each as often as it does."""

_PART = re.compile(r"\s*([0-9]{1,9})(?:-([0-9]{1,9}))?\s*")


def parse_ranks(text: str) -> frozenset[int]:
    """The ranks that `0,2-3` names; raises ValueError with a sentence for any other text."""
    ranks: set[int] = set()
    left = MOST_NAMED_RANKS
    for part in text.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(f"{text[:80]!r} is no list of ranks; write it like 0,2-3")
        first, last = int(match[1]), int(match[2] or match[1])
        left -= last + 1 - first
        if not first <= last or left < 0:
            raise ValueError(f"{part.strip()!r} is no range of ranks; write it like 2-3")
        ranks.update(range(first, last + 1))
    return frozenset(ranks)
