"""Windows: nodes that are out of service, or for one project alone, from a time to a time."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from muster.domain.ids import NodeId

DEFAULT_NOTICE = timedelta(hours=24)
"""How long before the begin of a window its nodes take only what ends in time."""
LONGEST_WINDOW_NOTICE = timedelta(days=365)
WINDOW_REASON = 500
"""Characters of the reason of a window."""
MOST_WINDOWS = 1_000
"""Windows that a fleet has at most."""
MOST_WINDOW_NODES = 10_000
"""Nodes that a window names at most."""


class WindowMode(StrEnum):
    """What becomes of jobs that still run when a window begins."""

    WAIT = "wait"  #: they run on, and nothing new is placed beside them


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Nodes that take nothing, or the jobs of one project alone, from a time to a time."""

    name: str
    begins: datetime
    ends: datetime
    nodes: tuple[NodeId, ...] = ()
    """The nodes by name; they need not have joined."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """All nodes that carry these labels as well, at least one; empty: those that are named alone."""
    project: str = ""
    """The project whose jobs the nodes take all the same; empty: they take none."""
    reason: str = ""
    """Why, for people."""
    notice: timedelta = DEFAULT_NOTICE
    """How long before the begin its nodes take only jobs that end in time."""
    mode: WindowMode = WindowMode.WAIT

    def is_of(self, node: NodeId, labels: Mapping[str, str]) -> bool:
        """Whether a node that carries these labels is one of its nodes."""
        return node in self.nodes or (bool(self.labels) and self.labels.items() <= labels.items())
