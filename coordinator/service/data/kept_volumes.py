"""The volumes that nodes keep, as their agents tell of them."""

import asyncio
from collections.abc import Collection, Sequence

from coordinator.service.data.node_book import AgentLine, NodeBook
from muster.domain.data.volume import KeptVolume, KeptVolumeNews, RemovedVolume, VolumeId, VolumeRemoval
from muster.domain.fleet.project_use import ProjectUse, UseKind, use_by
from muster.domain.ids import NodeId

VOLUME_REMOVAL_LIMIT = 15.0
"""Seconds in which an agent must have answered to the order to remove a volume."""

MOST_VOLUMES_TOLD = 1024
"""Kept volumes of one node that are remembered; what an agent tells beyond that is passed over."""

_UNDONE = "is not connected, so nothing was removed; try again once it is back"
_UNHEARD = "has not said whether it removed the volume; `muster volumes` shows it while it is there"


class KeptVolumeBook(NodeBook[VolumeId, KeptVolume, VolumeRemoval, RemovedVolume]):
    """What nodes keep for the jobs of projects, and the open streams of their agents."""

    def __init__(self, limit: float = VOLUME_REMOVAL_LIMIT) -> None:
        super().__init__(MOST_VOLUMES_TOLD, limit, _UNDONE, _UNHEARD)
        self.writing = asyncio.Lock()
        """Held by nobody: the book changes within one turn of the event loop."""

    def connected(self, node: NodeId, volumes: Collection[KeptVolume], line: AgentLine[VolumeRemoval]) -> None:
        """A node has a new stream, and these are all that it keeps."""
        self.begin(node, {each.id: each for each in volumes}, line)

    def changed(self, node: NodeId, news: KeptVolumeNews, line: AgentLine[VolumeRemoval]) -> None:
        """Take in what has changed; what an older stream brings counts for nothing."""
        self.change(node, {each.id: each for each in news.volumes}, news.gone, line)

    def answered(self, node: NodeId, answer: RemovedVolume) -> None:
        """Take in what has come of an order; nobody may wait for it any more."""
        self.hear(node, answer.number, answer)

    def of(self, node: NodeId) -> Sequence[KeptVolume]:
        """What a node keeps, by project and name."""
        return sorted(self.told(node).values(), key=lambda each: each.id)

    def get(self, node: NodeId, volume: VolumeId) -> KeptVolume | None:
        """One volume of a node."""
        return self.told(node).get(volume)

    def uses_of(self, project: str) -> tuple[ProjectUse, ...]:
        """What of it keeps a project from being removed, and its name from being used again."""
        there = [
            f"{node} {volume.name}"
            for node in sorted(self.nodes())
            for volume in sorted(self.told(node))
            if volume.project == project
        ]
        return use_by(UseKind.VOLUME, there)

    async def remove(self, node: NodeId, volume: VolumeId) -> RemovedVolume:
        """Have the agent of a node remove a volume; what came of it. Raises UnavailableError where it cannot say."""
        return await self.ask(node, lambda number: VolumeRemoval(number=number, volume=volume))
