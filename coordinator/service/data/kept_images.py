"""The images that agents have pulled onto their nodes, as they tell of them."""

from collections.abc import Collection, Sequence

from coordinator.service.data.node_book import AgentLine, NodeBook
from muster.domain.data.kept.image import MOST_IMAGES_TOLD, ClearedImages, ImageClearance, ImageNews, ToldImage
from muster.domain.ids import NodeId

IMAGE_CLEARANCE_LIMIT = 30.0
"""Seconds in which an agent must have answered to the order to clear images."""

_UNDONE = "is not connected, so no image was removed; try again once it is back"
_UNHEARD = "has not said which images it removed; `muster images list` shows those that are there"


class KeptImageBook(NodeBook[str, ToldImage, ImageClearance, ClearedImages]):
    """What agents have pulled, by the ids of the images, and their open streams."""

    def __init__(self, limit: float = IMAGE_CLEARANCE_LIMIT) -> None:
        super().__init__(MOST_IMAGES_TOLD, limit, _UNDONE, _UNHEARD)

    def connected(self, node: NodeId, images: Collection[ToldImage], line: AgentLine[ImageClearance]) -> None:
        """A node has a new stream, and these are all that its agent has pulled."""
        self.begin(node, {each.id: each for each in images}, line)

    def changed(self, node: NodeId, news: ImageNews, line: AgentLine[ImageClearance]) -> None:
        """Take in what has changed; what an older stream brings counts for nothing."""
        self.change(node, {each.id: each for each in news.images}, news.gone, line)

    def answered(self, node: NodeId, answer: ClearedImages) -> None:
        """Take in what has come of an order; nobody may wait for it any more."""
        self.hear(node, answer.number, answer)

    def of(self, node: NodeId) -> Sequence[ToldImage]:
        """What the agent of a node has pulled, by id."""
        return sorted(self.told(node).values(), key=lambda each: each.id)

    async def clear(self, node: NodeId, images: tuple[str, ...]) -> ClearedImages:
        """Have an agent take images away; what became of them. Raises UnavailableError where it cannot say."""
        return await self.ask(node, lambda number: ImageClearance(number=number, images=images))
