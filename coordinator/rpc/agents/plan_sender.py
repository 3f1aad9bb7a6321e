"""How plans go down to agents: small ones at once, large ones a few at a time and in parts."""

import logging
from itertools import chain

from coordinator.core.causes import EventCause
from coordinator.core.events import PlanTooLarge
from coordinator.engine.agent_streams import AgentStream
from coordinator.engine.engine import Engine
from coordinator.rpc.agents.downlink import Downlink
from coordinator.rpc.agents.send_slots import Lanes
from muster import wire
from muster.domain.ids import NodeId
from muster.rpc.v1 import agents_pb2 as pb

log = logging.getLogger(__name__)

SMALL_PLAN = 64 * 1024
"""Bytes of a plan that goes out at once; larger ones, as those with rosters or files are, wait for a lane."""
LANES = 32
"""So many larger plans are written at a time. Of a gang of 5,000 each has 2 MB, unless it is compressed."""
LANE_PATIENCE = 2.0
"""Seconds after which the next one is written although an agent has not taken its own yet."""


class PlanSender:
    """Writes the plans of all agents, which share rosters and lanes."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._plans = wire.PlanWriter()
        self._lanes = Lanes(LANES, LANE_PATIENCE)

    async def send_all(self, node: NodeId, session: AgentStream, down: Downlink) -> None:
        """Send what the engine wants a node to do; acknowledgements overtake plans that wait for a lane."""
        while True:
            plan, faults = self._plans.sendable(await session.outbox.get())
            for (job, attempt), message in faults.items():
                log.warning(
                    "attempt too large to be told",
                    extra={"node": node, "job": job, "attempt": attempt, "cause": message},
                )
                # First, so that nobody wonders at the end of executions that this plan tells to stop.
                cause = EventCause(f"plan {plan.revision} of {node}")
                event = PlanTooLarge(node=node, job=job, attempt=attempt, message=message, cause=cause)
                await self._engine.post(event)
            parts = self._plans.parts(plan)
            first = next(parts)
            if first.size <= SMALL_PLAN and not first.message.more:
                await down.send(pb.CoordinatorMessage(plan=first.message))
                continue
            async with self._lanes.one():
                for part in chain((first,), parts):
                    await down.send(pb.CoordinatorMessage(plan=part.message))
