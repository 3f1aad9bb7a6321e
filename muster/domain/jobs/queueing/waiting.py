"""Why a job waits: what keeps its newest attempt out of the queue, as values that clients see."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class WaitKind(StrEnum):
    """What keeps a job out of the queue."""

    USER = "user"  #: somebody holds it until it is released
    OPERATOR = "operator"  #: an operator holds it; only operators release it
    SUSPENDED = "suspended"  #: it was suspended until it is resumed
    TIME = "time"  #: its earliest time is still to come


HELD_BY_PEOPLE = frozenset({WaitKind.USER, WaitKind.OPERATOR, WaitKind.SUSPENDED})
"""Reasons that end when somebody says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitReason:
    """One reason not to place a job yet; it may have several."""

    kind: WaitKind
    by: str = ""
    """The account that wants it so; empty where nobody does."""
    since: datetime | None = None
    """From when on it holds; None: since the submit."""
    until: datetime | None = None
    """When it ends by itself; None: somebody has to say so."""

    @property
    def words(self) -> str:
        """The reason, as the rest of a sentence that may go on with times."""
        by = f" by {self.by}" if self.by else ""
        match self.kind:
            case WaitKind.USER:
                return f"held{by}"
            case WaitKind.OPERATOR:
                return f"held by operator {self.by}" if self.by else "held by an operator"
            case WaitKind.SUSPENDED:
                return f"suspended{by}"
            case WaitKind.TIME:
                return "not to begin"


def among(reasons: Iterable[WaitReason], kind: WaitKind) -> WaitReason | None:
    """The reason of a kind; None: there is none."""
    return next((reason for reason in reasons if reason.kind is kind), None)
