"""The newest sample of each node, as it came: bytes that nobody looks into until somebody asks."""

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from coordinator.signals import ANY_NODE, Listener, SampledNode, Signals
from muster.domain.ids import NodeId
from muster.domain.telemetry.sample import MAX_SAMPLE

MOST_SAMPLES = 16 * 1024 * 1024
"""Bytes of samples that are kept of all nodes together; the oldest are dropped first."""
SAMPLE_AGE = 60.0
"""Seconds after which a sample says nothing of its node any more."""


@dataclass(frozen=True, slots=True)
class KeptSample:
    """The newest sample of a node."""

    number: int
    """The larger, the later it came."""
    came_at: float
    data: bytes


class NewestSamples:
    """What nodes use, for as long as it is news; nothing of it is kept on the disk."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._signals = Signals()
        self._clock = clock
        self._kept: dict[NodeId, KeptSample] = {}
        """The oldest first."""
        self._bytes = 0
        self._number = 0

    @property
    def number(self) -> int:
        """The number of the newest of all."""
        return self._number

    def put(self, node: NodeId, data: bytes) -> None:
        """Keep a sample in place of the one before; one that is empty or too large is none."""
        if not 0 < len(data) <= MAX_SAMPLE:
            return
        self._drop(node)
        self._number += 1
        self._kept[node] = KeptSample(self._number, self._clock(), data)
        self._bytes += len(data)
        while self._bytes > MOST_SAMPLES:
            self._drop(next(iter(self._kept)))
        self._signals.fire(SampledNode(node))
        self._signals.fire(ANY_NODE)

    def since(self, number: int, nodes: Collection[NodeId] | None = None) -> Iterator[tuple[NodeId, bytes]]:
        """The samples of these nodes, or of all, that came after the one with this number; not those that are old."""
        oldest = self._clock() - SAMPLE_AGE
        for node in list(self._kept) if nodes is None else nodes:
            kept = self._kept.get(node)
            if kept is not None and kept.number > number and kept.came_at >= oldest:
                yield node, kept.data

    @contextmanager
    def telling(self, listener: Listener, nodes: Collection[NodeId] | None) -> Iterator[None]:
        """Have a listener hear of samples of these nodes, or of any, while the context is open."""
        keys = (ANY_NODE,) if nodes is None else tuple(map(SampledNode, nodes))
        for key in keys:
            self._signals.follow(listener, key)
        try:
            yield
        finally:
            for key in keys:
                self._signals.unfollow(listener, key)

    def _drop(self, node: NodeId) -> None:
        dropped = self._kept.pop(node, None)
        if dropped is not None:
            self._bytes -= len(dropped.data)
