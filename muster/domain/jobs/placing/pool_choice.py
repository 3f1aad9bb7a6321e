"""The pools in which a job is placed, one after the other."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from muster.domain.quantity import format_duration


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolChoice:
    """A pool that a job names."""

    pool: str
    after: timedelta | None = None
    """How long the job has waited in the queue before it goes there; None: it goes there at once."""

    def __str__(self) -> str:
        return self.pool if self.after is None else f"{self.pool} after {format_duration(self.after)}"


def open_pools(choices: Iterable[PoolChoice], waited: timedelta) -> tuple[str, ...] | None:
    """The pools in which a job that has waited for so long is placed, in order; None: in any."""
    pools = tuple(choices)
    return tuple(choice.pool for choice in pools if choice.after is None or choice.after <= waited) if pools else None
