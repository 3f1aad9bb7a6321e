"""Changes of the fleet's authority: how far one is, and what each stage waits for."""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime

from coordinator.clock import wall_time
from coordinator.core.causes import EventCause
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.events import FleetChanged
from coordinator.engine.engine import Engine, Freshness
from coordinator.trust.authority import FleetAuthority
from coordinator.trust.joined_nodes import JoinedNodes
from coordinator.trust.rotation import RotationStage
from muster.domain.errors import ConflictError, MusterError
from muster.domain.event import FleetEventKind
from muster.domain.fleet.access import AuthorityStatus, KnownAuthority
from muster.domain.gangs.fence import LEASE
from muster.domain.ids import NodeId
from muster.trust.certificates import facts

LOOK_PAUSE = 1.0
"""Seconds between looks at whether all nodes that are there know the next authority."""

NAMED = 5
"""Nodes that a refusal names."""

_SIGNS = {
    RotationStage.STEADY: ("everything", ""),
    RotationStage.INTRODUCING: ("everything", "nothing yet"),
    RotationStage.ISSUING: ("the coordinator", "nodes"),
    RotationStage.FINISHING: ("the coordinator", "nodes"),
}

log = logging.getLogger(__name__)


class Rotations:
    """How far the change of the authority is, told by what each node has shown."""

    def __init__(self, authority: FleetAuthority | None, nodes: JoinedNodes, engine: Engine) -> None:
        self._authority = authority
        self._nodes = nodes
        self._engine = engine

    @property
    def authority(self) -> FleetAuthority:
        """The authority; raises ConflictError where there is none."""
        if self._authority is None:
            raise ConflictError("`muster up` has no authority: it speaks plain text, on this machine only")
        return self._authority

    async def status(self) -> AuthorityStatus:
        """How far it is now."""
        rotation, present = self.authority.rotation, self.authority.certificate
        joined = [node for node in self._nodes.by_name.values() if node.revoked_at is None]
        behind = sorted(node.name for node in joined if node.epoch < rotation.epoch)
        there = await self._engine.query(_there(behind), after=Freshness.COMMITTED)
        certificates = [present] if rotation.next is None else [present, rotation.next.certificate]
        known = zip(map(facts, certificates), _SIGNS[rotation.stage], strict=False)
        return AuthorityStatus(
            stage=rotation.stage,
            authorities=tuple(
                KnownAuthority(fingerprint=said.key, signs=signs, not_after=said.not_after) for said, signs in known
            ),
            begun_at=rotation.begun_at,
            moved=len(joined) - len(behind),
            waiting=tuple(name for name in behind if name in there),
            away=tuple(name for name in behind if name not in there),
        )

    async def begin(self, cause: EventCause) -> AuthorityStatus:
        """Have nodes learn the next authority."""
        await self.authority.rotate(wall_time())
        await self._engine.post(FleetChanged(kind=FleetEventKind.AUTHORITY_ROTATING, cause=cause))
        log.info("the authority is being changed: nodes learn the next one")
        return await self.status()

    async def finish(self, cause: EventCause, *, force: bool) -> AuthorityStatus:
        """Have the former authority count no more; raises ConflictError while a node that is there needs it."""
        status = await self.status()
        if status.stage is not RotationStage.STEADY and not force:
            if status.waiting:
                named = ", ".join(status.waiting[:NAMED]) + (", …" if len(status.waiting) > NAMED else "")
                raise ConflictError(
                    f"{len(status.waiting)} nodes that are there have not moved yet: {named}. They do so within "
                    "minutes; with --force they must join again with a new token"
                )
            if status.stage == RotationStage.INTRODUCING:
                raise ConflictError("the nodes have only just learned the next authority; ask again in a moment")
        await self.authority.finish(wall_time())
        await self._engine.post(FleetChanged(kind=FleetEventKind.AUTHORITY_ROTATED, cause=cause))
        log.info("the former authority counts no more")
        return await self.status()

    async def watch(self) -> None:
        """Have the next authority sign as soon as all nodes that are there know it, until cancelled."""
        while True:
            if self.authority.rotation.stage is RotationStage.INTRODUCING and not (await self.status()).waiting:
                try:
                    await self.authority.issue()
                    log.info("all nodes that are there know the next authority, which signs for nodes now")
                except MusterError as error:
                    log.warning("the next authority cannot sign yet", extra={"cause": str(error)})
            await asyncio.sleep(LOOK_PAUSE)


def _there(names: list[NodeId]) -> Callable[[Cluster, datetime], frozenset[NodeId]]:
    """Which of these nodes are there, as far as the coordinator could hear since it runs."""

    def found(cluster: Cluster, now: datetime) -> frozenset[NodeId]:
        known = (name for name in names if name in cluster.presence)
        return frozenset(name for name in known if now < cluster.presence.heard_at(name) + LEASE)

    return found
