"""Images that the agent has pulled, as the coordinator hears of them; and its orders to clear or pull some."""

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol, runtime_checkable

from agent.image_pulls import OrderedPulls
from agent.mailbox import Outbox
from agent.told_changes import ToldChanges, next_order
from muster.domain.data.kept.image import (
    MOST_IMAGES_TOLD,
    ClearedImages,
    ClearOutcome,
    ImageClearance,
    ImageFate,
    ImageNews,
    ToldImage,
)
from muster.domain.data.kept.pull import ImagePull, PullNews
from muster.rpc.v1 import agents_pb2 as pb
from muster.wire.data.image_pulls import pull_news_to_wire
from muster.wire.data.pulled_images import cleared_images_to_wire, image_news_to_wire

log = logging.getLogger(__name__)

MOST_CLEARANCES_WAITING = 64
"""Orders to clear images that wait for those before them; what is more is not carried out."""


class ImagesOfRuntime(Protocol):
    """The images that the agent has pulled."""

    @property
    def revision(self) -> int:
        """Counts up whenever there is something to tell of them."""
        ...

    def told(self) -> Sequence[ToldImage]:
        """All of them, the one that was used last first."""
        ...

    async def clear_now(self, images: Collection[str]) -> Sequence[ImageFate]:
        """Remove images that nobody uses, by names or ids; none: all of them. What has become of each; never raises."""
        ...


@runtime_checkable
class HasImages(Protocol):
    """A runtime whose executions have images."""

    @property
    def images(self) -> ImagesOfRuntime:
        """What it has pulled."""
        ...


class KeptImagesHere:
    """What one node tells of the images that its agent has pulled, and how it clears and pulls them."""

    def __init__(self, runtimes: Collection[object], outbox: Outbox) -> None:
        self._pulls = OrderedPulls(runtimes, self._tell_pull)
        self._pulled = [each.images for each in runtimes if isinstance(each, HasImages)]
        self._outbox = outbox
        self._changes = ToldChanges(self._revision, self._look, self._send)
        self._orders: asyncio.Queue[ImageClearance] = asyncio.Queue(MOST_CLEARANCES_WAITING)

    def all(self) -> Collection[ToldImage]:
        """All of them, for Hello; what is told from here on is what changes."""
        return self._changes.all()

    def order(self, order: ImageClearance | ImagePull) -> None:
        """Have images cleared or pulled, and answer."""
        if isinstance(order, ImagePull):
            self._pulls.take(order)
            return
        try:
            self._orders.put_nowait(order)
        except asyncio.QueueFull:
            log.warning("too many orders to clear images at once")

    async def run(self) -> None:
        """Tell what changes, and carry out orders, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._pulls.run(), name="pulls of images")
            await self._tell_and_clear()

    async def _tell_and_clear(self) -> None:
        while True:
            await self._changes.tell()
            if (order := await next_order(self._orders)) is not None:
                await self._carry_out(order)

    async def _carry_out(self, order: ImageClearance) -> None:
        fates = await self._cleared(order.images)
        await self._changes.tell()
        answer = ClearedImages(number=order.number, fates=tuple(fates))
        self._outbox.send(pb.AgentMessage(cleared_images=cleared_images_to_wire(answer)))

    async def _cleared(self, images: Collection[str]) -> Sequence[ImageFate]:
        if not self._pulled:
            return [ImageFate(image=each, outcome=ClearOutcome.UNKNOWN) for each in images]
        return [fate for each in self._pulled for fate in await each.clear_now(images)]

    def _revision(self) -> int:
        return sum(each.revision for each in self._pulled)

    async def _look(self) -> Mapping[str, ToldImage]:
        told = [image for each in self._pulled for image in each.told()]
        return {each.id: each for each in told[:MOST_IMAGES_TOLD]}

    def _tell_pull(self, news: PullNews) -> None:
        self._outbox.send(pb.AgentMessage(pull_news=pull_news_to_wire(news)))

    def _send(self, new: Collection[ToldImage], gone: Collection[str]) -> bool:
        news = ImageNews(images=tuple(new), gone=tuple(gone))
        return self._outbox.send(pb.AgentMessage(pulled_images=image_news_to_wire(news)))
