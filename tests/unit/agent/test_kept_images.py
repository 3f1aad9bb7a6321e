"""What an agent tells of the images that it has pulled, and how it answers orders to clear some."""

import asyncio
from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from agent.kept_images import KeptImagesHere
from agent.mailbox import Outbox
from muster.domain.data.kept.image import ClearedImages, ClearOutcome, ImageClearance, ImageFate, ImageNews, ToldImage
from muster.rpc.v1 import agents_pb2 as pb
from muster.wire.data.pulled_images import cleared_images_from_wire, image_news_from_wire

AT = datetime(2026, 5, 1, tzinfo=UTC)
ONE, TWO = (ToldImage(id=each, names=(f"team/{each}:1",), bytes=7, used_at=AT) for each in ("one", "two"))


class Engine:
    """A runtime that has pulled two images, and removes what it is told to."""

    def __init__(self) -> None:
        self.revision = 0
        self.images = self
        self._images = [ONE, TWO]

    def told(self) -> Sequence[ToldImage]:
        return tuple(self._images)

    async def clear_now(self, images: Collection[str]) -> Sequence[ImageFate]:
        going = [each for each in self._images if each.names[0] in images]
        self._images = [each for each in self._images if each not in going]
        self.revision += 1
        return [ImageFate(image=each.names[0], outcome=ClearOutcome.REMOVED, bytes=each.bytes) for each in going]


async def answered(runtime: object, images: tuple[str, ...]) -> tuple[list[ImageNews], ClearedImages]:
    """What a node tells until it has answered an order, and the answer."""
    outbox = Outbox()
    messages = outbox.open()
    here = KeptImagesHere([runtime], outbox)
    here.order(ImageClearance(number="1", images=images))
    running = asyncio.create_task(here.run())
    news: list[ImageNews] = []
    try:
        while True:
            message: pb.AgentMessage = await messages.get()
            if message.WhichOneof("message") == "cleared_images":
                return news, cleared_images_from_wire(message.cleared_images)
            news.append(image_news_from_wire(message.pulled_images))
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def test_what_has_gone_is_told_before_the_order_is_answered() -> None:
    news, answer = await answered(Engine(), ("team/one:1",))

    assert news == [ImageNews(images=(ONE, TWO)), ImageNews(gone=("one",))]
    assert [(each.image, each.outcome) for each in answer.fates] == [("team/one:1", ClearOutcome.REMOVED)]


async def test_a_node_without_an_engine_has_pulled_none() -> None:
    news, answer = await answered(object(), ("team/one:1",))

    assert news == []
    assert [each.outcome for each in answer.fates] == [ClearOutcome.UNKNOWN]
