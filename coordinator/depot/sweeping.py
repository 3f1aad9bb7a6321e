"""What the depot removes: what no record names, once whoever sent it has had time to say so; pure."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta

UNNAMED_KEPT = timedelta(hours=24)
"""How long an object is kept that no record names, and the beginning of one that nobody goes on sending."""


def unnamed(there: Iterable[tuple[str, datetime]], named: AbstractSet[str], now: datetime) -> tuple[str, ...]:
    """The objects that go, of those that are there since some time; `named` are those that records name."""
    return tuple(digest for digest, since in there if digest not in named and now - since >= UNNAMED_KEPT)
