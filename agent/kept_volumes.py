"""Volumes that the node keeps, as the coordinator hears of them; and its orders to remove one."""

import asyncio
import logging
from collections.abc import Collection, Mapping
from pathlib import Path

from agent.executions.volumes.node_volumes import NodeVolumes
from agent.mailbox import Outbox
from agent.told_changes import ToldChanges, next_order
from muster.domain.data.volume import (
    KeptVolume,
    KeptVolumeNews,
    RemovalOutcome,
    RemovedVolume,
    VolumeId,
    VolumeRemoval,
)
from muster.rpc.v1 import agents_pb2 as pb
from muster.wire.data.volumes import kept_volume_news_to_wire, removed_volume_to_wire

log = logging.getLogger(__name__)

MOST_REMOVALS_WAITING = 64
"""Orders to remove a volume that wait for those before them; what is more is not carried out."""


class KeptVolumesHere:
    """What one node tells of the volumes that it keeps: all of them in Hello, and then what changes."""

    def __init__(self, volumes: NodeVolumes, executions: Path, outbox: Outbox) -> None:
        """Tell nothing yet; `executions`: the directory of the node's executions."""
        self._kept = volumes.kept
        self._root = volumes.below(executions)
        self._outbox = outbox
        self._changes = ToldChanges(lambda: self._kept.revision, self._look, self._send)
        self._orders: asyncio.Queue[VolumeRemoval] = asyncio.Queue(MOST_REMOVALS_WAITING)

    def all(self) -> Collection[KeptVolume]:
        """All of them, for Hello; what is told from here on is what changes."""
        return self._changes.all()

    def remove(self, order: VolumeRemoval) -> None:
        """Have a volume removed, and answer once no job finds it any more."""
        try:
            self._orders.put_nowait(order)
        except asyncio.QueueFull:
            log.warning("too many volumes to remove at once", extra={"volume": str(order.volume)})

    async def run(self) -> None:
        """Tell what changes, and carry out orders, until cancelled; once what earlier agents left was swept."""
        async with asyncio.TaskGroup() as tasks:
            await self._changes.tell()
            while True:
                order = await next_order(self._orders)
                answer = None if order is None else await self._removed(order)
                await self._changes.tell()
                if answer is not None:
                    self._outbox.send(pb.AgentMessage(removed_volume=removed_volume_to_wire(answer)))
                    if answer.outcome is RemovalOutcome.REMOVED:
                        tasks.create_task(asyncio.to_thread(self._kept.clear_away, self._root), name="clear a volume")

    async def _removed(self, order: VolumeRemoval) -> RemovedVolume:
        try:
            outcome, why = await asyncio.to_thread(self._kept.take_away, self._root, order.volume)
        except OSError as error:
            outcome, why = RemovalOutcome.FAILED, f"{error.strerror or error} ({error.filename})"
        log.info(
            "volume removed" if outcome is RemovalOutcome.REMOVED else "volume not removed", extra=_about(order, why)
        )
        return RemovedVolume(number=order.number, outcome=outcome, why=why)

    async def _look(self) -> Mapping[VolumeId, KeptVolume]:
        found = await asyncio.to_thread(self._kept.told, self._root)
        return {each.id: each for each in found}

    def _send(self, new: Collection[KeptVolume], gone: Collection[VolumeId]) -> bool:
        news = KeptVolumeNews(volumes=tuple(new), gone=tuple(gone))
        return self._outbox.send(pb.AgentMessage(kept_volumes=kept_volume_news_to_wire(news)))


def _about(order: VolumeRemoval, why: str) -> Mapping[str, str]:
    return {"volume": str(order.volume), **({"cause": why} if why else {})}
