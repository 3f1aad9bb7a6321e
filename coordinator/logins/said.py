"""What an identity provider says, before anybody believes it."""

from collections.abc import Mapping
from typing import TypeAlias

Json: TypeAlias = Mapping[str, object]


def shown(text: str, limit: int = 200) -> str:
    """What a provider said, fit for a log and a terminal."""
    return "".join(each if each.isprintable() else "?" for each in text[:limit])
