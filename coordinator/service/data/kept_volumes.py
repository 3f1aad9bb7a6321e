"""The volumes that nodes keep, as their agents tell of them; in memory, as the agents tell it again when they come."""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from itertools import count, islice
from typing import Protocol

from muster.domain.data.volume import KeptVolume, KeptVolumeNews, RemovedVolume, VolumeId, VolumeRemoval
from muster.domain.errors import UnavailableError
from muster.domain.fleet.project_use import ProjectUse, UseKind, use_by
from muster.domain.ids import NodeId

VOLUME_REMOVAL_LIMIT = 15.0
"""Seconds in which an agent must have answered to the order to remove a volume."""

MOST_VOLUMES_TOLD = 1024
"""Kept volumes of one node that are remembered; what an agent tells beyond that is passed over."""


class VolumeLineEndedError(Exception):
    """The stream is over; whether its agent has heard the order is not known."""


class AgentLine(Protocol):
    """The open stream of one agent."""

    async def send(self, order: VolumeRemoval) -> None:
        """Write an order; raises VolumeLineEndedError once the stream is over."""
        ...


class KeptVolumeBook:
    """What nodes keep, and the open streams of their agents. What a node has told stays while it is away."""

    def __init__(self, limit: float = VOLUME_REMOVAL_LIMIT) -> None:
        self.writing = asyncio.Lock()
        """Held by nobody: the book changes within one turn of the event loop."""
        self._limit = limit
        self._told: dict[NodeId, dict[VolumeId, KeptVolume]] = {}
        self._lines: dict[NodeId, AgentLine] = {}
        self._answers: dict[tuple[NodeId, str], asyncio.Future[RemovedVolume]] = {}
        self._numbers = count(1)

    # what agents tell

    def connected(self, node: NodeId, volumes: Collection[KeptVolume], line: AgentLine) -> None:
        """A node has a new stream, and these are all that it keeps."""
        self._told[node] = {each.id: each for each in islice(volumes, MOST_VOLUMES_TOLD)}
        self._lines[node] = line

    def disconnected(self, node: NodeId, line: AgentLine) -> None:
        """A stream has ended; a newer one of the same node stays."""
        if self._lines.get(node) is line:
            del self._lines[node]
            for (where, _), answer in [*self._answers.items()]:
                if where == node and not answer.done():
                    answer.set_exception(_unheard(node))

    def changed(self, node: NodeId, news: KeptVolumeNews, line: AgentLine) -> None:
        """Take in what has changed; what an older stream brings counts for nothing."""
        if self._lines.get(node) is line:
            told = self._told[node]
            for gone in news.gone:
                told.pop(gone, None)
            for each in news.volumes:
                if each.id in told or len(told) < MOST_VOLUMES_TOLD:
                    told[each.id] = each

    def answered(self, node: NodeId, answer: RemovedVolume) -> None:
        """Take in what has come of an order; nobody may wait for it any more."""
        waiting = self._answers.get((node, answer.number))
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    # what others ask

    def nodes(self) -> Iterable[NodeId]:
        """Nodes that keep any."""
        return [node for node, told in self._told.items() if told]

    def of(self, node: NodeId) -> Sequence[KeptVolume]:
        """What a node keeps, by project and name."""
        return sorted(self._told.get(node, {}).values(), key=lambda each: each.id)

    def get(self, node: NodeId, volume: VolumeId) -> KeptVolume | None:
        """One volume of a node."""
        return self._told.get(node, {}).get(volume)

    def is_connected(self, node: NodeId) -> bool:
        """Whether the agent of a node is there."""
        return node in self._lines

    def forget_all_but(self, nodes: Collection[NodeId]) -> None:
        """Forget nodes that were given up."""
        for node in [node for node in self._told if node not in nodes]:
            del self._told[node]

    def uses_of(self, project: str) -> tuple[ProjectUse, ...]:
        """What of it keeps a project from being removed, and its name from being used again."""
        there = [
            f"{node} {volume.name}"
            for node in sorted(self._told)
            for volume in sorted(self._told[node])
            if volume.project == project
        ]
        return use_by(UseKind.VOLUME, there)

    async def remove(self, node: NodeId, volume: VolumeId) -> RemovedVolume:
        """Have the agent of a node remove a volume; what came of it. Raises UnavailableError where it cannot say."""
        line = self._lines.get(node)
        if line is None:
            raise UnavailableError(f"node {node} is not connected, so nothing was removed; try again once it is back")
        number = str(next(self._numbers))
        answer: asyncio.Future[RemovedVolume] = asyncio.get_running_loop().create_future()
        self._answers[node, number] = answer
        try:
            async with asyncio.timeout(self._limit):
                await line.send(VolumeRemoval(number=number, volume=volume))
                return await answer
        except (TimeoutError, VolumeLineEndedError):
            raise _unheard(node) from None
        finally:
            del self._answers[node, number]


def _unheard(node: NodeId) -> UnavailableError:
    return UnavailableError(
        f"node {node} has not said whether it removed the volume; `muster volumes` shows it while it is there"
    )
