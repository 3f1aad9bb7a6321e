"""How an attempt is kept from running twice: the times and words of the protocol (`docs/fencing.md`)."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from muster.domain.ids import NodeId
from muster.domain.jobs.disconnect import DEFAULT_LOST_AFTER, OnDisconnect

LEASE = timedelta(seconds=30)
"""How long a silent node or coordinator is believed to be there: three missed heartbeats."""

DEAD_BY = 0.9
"""The part of `lost_after` at whose end nothing runs any more on a node that is cut off.

The rest is for clocks whose rates differ, by up to one in twenty, and for the time that a kill takes.
"""

WITNESSES = 8
"""Most nodes that are asked: the first of the attempt, in rank order, without the one that asks."""

PERMIT = timedelta(seconds=20)
"""How long after its question an agent may have user code running if all witnesses said WITHOUT."""

PERMIT_ENDS_WITHIN = timedelta(seconds=25)
"""How long after the last WITHOUT of a witness a permit may be in use, for the coordinator: PERMIT and a margin."""

QUESTION_INTERVAL = timedelta(seconds=2)
"""Between two rounds of questions."""

LONGEST_FENCE_GRACE = timedelta(seconds=10)
"""Between SIGTERM and SIGKILL when an agent stops executions because it is cut off; at most the job's own grace."""


class PeerWord(StrEnum):
    """What an agent answers to another one of the same attempt that has lost the coordinator."""

    WITHOUT = "without"  #: my part goes on, and I have not heard of the coordinator for a lease either
    CONNECTED = "connected"  #: the coordinator is there
    OVER = "over"  #: my part was told to stop, has failed, or is not known here


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """Another node of the attempt, whose agent can be asked."""

    node: NodeId
    address: str
    """`host:port` of its agent; empty: it cannot be asked, which counts as no answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """What an agent needs to know to keep one execution from running beside a later attempt."""

    lost_after: timedelta = DEFAULT_LOST_AFTER
    on_disconnect: OnDisconnect = OnDisconnect.KEEP
    key: bytes = b""
    """Secret of the attempt: questions and answers between its agents are signed with it."""
    witnesses: tuple[Witness, ...] = ()
    """None: it is alone, and KEEP keeps it for as long as it takes."""


def dead_by(lost_after: timedelta) -> timedelta:
    """How long after its last proven contact an agent may have user code running."""
    return lost_after * DEAD_BY
