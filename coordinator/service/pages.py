"""Where a page of a list begins, as callers hand it back."""

from muster.domain.errors import InvalidJobError

_LONGEST_TOKEN = 18
"""Digits, which fit into what a machine counts with."""


def page_start(token: str) -> int | None:
    """The number at which a page begins; None: at the beginning. Raises InvalidJobError."""
    if not token:
        return None
    if not token.isdecimal() or len(token) > _LONGEST_TOKEN:
        raise InvalidJobError(f"{token[:80]!r} is not a page token of this service")
    return int(token)
