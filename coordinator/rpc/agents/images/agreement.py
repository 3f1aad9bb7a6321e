"""How the nodes of a job agree on which image a name means: that of one rank finds it out, all run what it found."""

import asyncio
from contextlib import suppress
from typing import NamedTuple

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.data_events import ImageFound
from coordinator.core.records import Execution
from coordinator.engine.engine import Engine
from coordinator.rpc.agents.entitled import entitled_to
from coordinator.trust.caller import Caller
from muster.domain.errors import InvalidJobError, UnknownNameError
from muster.domain.fleet.features import ONE_IMAGE
from muster.domain.ids import ExecutionId, JobId
from muster.domain.jobs.image import FoundImage, ImagePass
from muster.domain.jobs.job import PullPolicy

IMAGE_ANSWER = 5.0
"""Seconds for which a node waits in one call until another one has said which image a name means."""


class _Awaited(NamedTuple):
    job: JobId
    image: str


class ImageAgreement:
    """Takes what one node of a job has found, and tells it all others."""

    def __init__(self, engine: Engine, patience: float = IMAGE_ANSWER) -> None:
        self._engine = engine
        self._patience = patience
        self._waiting: dict[_Awaited, set[asyncio.Event]] = {}

    async def told(self, who: Caller, id_: ExecutionId, found: FoundImage | None) -> ImagePass:
        """What counts for the image of an execution; `found`: what its node has found, noted once it is durable.

        Waits for some seconds where another node finds it out. Raises UnknownNameError, PermissionDeniedError,
        ConflictError, or InvalidJobError for what the node is not asked.
        """
        _, role = await entitled_to(self._engine, who, id_, "image")
        if role.image is None:
            raise UnknownNameError(f"execution {id_} is no container")
        shown, awaited = await self._shown(id_, role.image)
        if shown.found is not None:
            return shown
        if found is None:
            return shown if shown.finds else await self._once_said(id_, awaited)
        if found.image != role.image or not shown.finds:
            raise InvalidJobError(f"execution {id_} is not the one that finds out what the image {found.image} is")
        await self._engine.apply(ImageFound(job=awaited.job, found=found))
        for said in self._waiting.pop(awaited, ()):
            said.set()
        return (await self._shown(id_, role.image))[0]

    async def _once_said(self, id_: ExecutionId, awaited: _Awaited) -> ImagePass:
        """What counts once somebody has said it, or that nobody has for as long as one call may wait."""
        said = asyncio.Event()
        waiting = self._waiting.setdefault(awaited, set())
        waiting.add(said)
        try:
            shown, _ = await self._shown(id_, awaited.image)  # it may have been said since it was asked for
            if shown.found is None:
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._patience):
                        await said.wait()
        finally:
            waiting.discard(said)
            if not waiting and self._waiting.get(awaited) is waiting:
                del self._waiting[awaited]
        return (await self._shown(id_, awaited.image))[0]

    async def _shown(self, id_: ExecutionId, image: str) -> tuple[ImagePass, _Awaited]:
        return await self._engine.query(lambda cluster, _: _shown(cluster, id_, image))


def _shown(cluster: Cluster, id_: ExecutionId, image: str) -> tuple[ImagePass, _Awaited]:
    execution = cluster.executions.get(id_)
    if execution is None:
        raise UnknownNameError(f"there is no execution {id_}")
    job = cluster.jobs[execution.job]
    found = next((each for each in job.images if each.image == image), None)
    finds = found is None and _finder(cluster, execution, image) == execution.rank
    return ImagePass(found=found, finds=finds), _Awaited(job.id, image)


def _finder(cluster: Cluster, execution: Execution, image: str) -> int:
    """The first rank with this image whose agent can find out what it is; none other can: the execution itself."""
    for role, ranks in cluster.jobs[execution.job].spec.ranks_by_role():
        for rank in ranks if role.image == image and role.pull is not PullPolicy.NEVER else ():
            node = cluster.gangs.rank(execution.attempt_id, rank).node
            if node is not None and node in cluster.nodes and ONE_IMAGE in cluster.nodes[node].features:
                return rank
    return execution.rank
