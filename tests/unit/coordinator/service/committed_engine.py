"""An engine of a cluster in which nothing happens any more."""

from collections.abc import Callable
from datetime import datetime

from coordinator.core.cluster.cluster import Cluster
from coordinator.engine.engine import Freshness
from coordinator.signals import Signals
from tests.builders import World


class CommittedEngine:
    """Answers from a cluster in which nothing happens any more."""

    def __init__(self, w: World) -> None:
        self.signals = Signals()
        self._world = w

    async def query(self, question: Callable[[Cluster, datetime], object], *, after: Freshness) -> object:
        assert after is Freshness.COMMITTED
        return question(self._world.cluster, self._world.now)

    def query_now(self, question: Callable[[Cluster], object]) -> object:
        return question(self._world.cluster)
