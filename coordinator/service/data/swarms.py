"""Swarms of nodes that fetch the same for an attempt, as their nodes are told of them."""

from collections import OrderedDict

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.turn import swarms
from coordinator.engine.engine import Engine
from muster.domain.data.sharing.swarm_pass import LONGEST_WANTED, SwarmPass
from muster.domain.errors import UnknownNameError
from muster.domain.ids import AttemptId, ExecutionId
from muster.domain.jobs.job import Role

MOST_SWARMS_KEPT = 256
"""Things that attempts fetch of which the coordinator remembers the nodes; of others it looks them up again."""


class Swarms:
    """Tells nodes of each other."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known: OrderedDict[tuple[AttemptId, str], swarms.Swarms] = OrderedDict()
        """The nodes of an attempt do not change, and each of them asks."""

    async def of(self, id_: ExecutionId, role: Role, wanted: str) -> SwarmPass:
        """The nodes that fetch the same as an execution of a role, of whose node somebody has made sure that it asks.

        Raises UnknownNameError for what it does not fetch.
        """
        if len(wanted) > LONGEST_WANTED:
            raise UnknownNameError(f"execution {id_} fetches nothing of that name")
        return await self._engine.query(lambda cluster, _: self._found(cluster, id_, role, wanted))

    def _found(self, cluster: Cluster, id_: ExecutionId, role: Role, wanted: str) -> SwarmPass:
        execution = cluster.executions.get(id_)
        if execution is None or execution.node is None:
            return SwarmPass()
        if not (swarms.wants(role, wanted) or swarms.restores(cluster, execution, wanted)):
            raise UnknownNameError(f"execution {id_} fetches nothing of that name")
        place = (execution.attempt_id, wanted)
        if place not in self._known:
            self._known[place] = swarms.swarms_for(cluster, execution.attempt_id, wanted)
            if len(self._known) > MOST_SWARMS_KEPT:
                self._known.popitem(last=False)
        return swarms.swarm_pass(cluster, execution.attempt_id, wanted, self._known[place], execution.node)
