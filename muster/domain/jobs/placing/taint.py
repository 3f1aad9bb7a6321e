"""Taints: what keeps jobs off a node unless they say that they put up with it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from muster.domain.jobs.placing.toleration import TaintEffect, Toleration, TolerationOperator

MOST_TAINTS = 16
"""Taints of one node."""
TAINT_VALUE = 256
"""Characters in the value of a taint."""
COST_OF_A_TAINT = 100
"""What a taint adds to the cost of a node that jobs rather leave alone."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Taint:
    """A mark of a node; key and effect name it, so a node has one value for both."""

    key: str
    effect: TaintEffect
    value: str = ""

    def __str__(self) -> str:
        """Say it as commands take it: `gpu=bad:NoExecute`."""
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaintName:
    """Taints that an operator takes away."""

    key: str
    effect: TaintEffect | None = None
    """None: whatever effect they have."""

    def names(self, taint: Taint) -> bool:
        """Whether a taint is one of them."""
        return self.key == taint.key and self.effect in {None, taint.effect}


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTaint:
    """A taint as a node has it."""

    taint: Taint
    since: datetime
    after: timedelta = timedelta()
    """Time for which what runs there without a toleration goes on; 0 where the effect is not NoExecute."""


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether a taint is one of those that a toleration is about, for however long."""
    return (
        toleration.key in {"", taint.key}
        and toleration.effect in {None, taint.effect}
        and (toleration.operator is TolerationOperator.EXISTS or toleration.value == taint.value)
    )


def forbidding(taints: Iterable[Taint], tolerations: tuple[Toleration, ...]) -> Taint | None:
    """The first taint because of which a job with these tolerations is not placed on a node; None: there is none.

    A toleration for some seconds is not enough: the job would be placed there again whenever they are over.
    """
    hard = (taint for taint in taints if taint.effect is not TaintEffect.PREFER_NO_SCHEDULE)
    return next((taint for taint in hard if _time(taint, tolerations) is not None), None)


def cost_of_taints(taints: Iterable[Taint], tolerations: tuple[Toleration, ...]) -> int:
    """What a node costs a job that would rather be placed elsewhere."""
    soft = (taint for taint in taints if taint.effect is TaintEffect.PREFER_NO_SCHEDULE)
    return COST_OF_A_TAINT * sum(_time(taint, tolerations) is not None for taint in soft)


def ends_at(taint: NodeTaint, tolerations: tuple[Toleration, ...]) -> datetime | None:
    """When what runs on a node is to go because of a taint; None: never."""
    if taint.taint.effect is not TaintEffect.NO_EXECUTE:
        return None
    tolerated = _time(taint.taint, tolerations)
    return None if tolerated is None else taint.since + taint.after + tolerated


def _time(taint: Taint, tolerations: tuple[Toleration, ...]) -> timedelta | None:
    """How long a taint is tolerated, by the toleration that lasts longest; None: for ever."""
    longest = 0
    for toleration in tolerations:
        if tolerates(toleration, taint):
            if toleration.seconds is None:
                return None
            longest = max(longest, toleration.seconds)
    return timedelta(seconds=longest)
