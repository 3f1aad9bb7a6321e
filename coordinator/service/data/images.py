"""Operations on images that agents have pulled onto their nodes: who may see them, and who may have them cleared."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.placement.capacity import key_of
from coordinator.engine.engine import Engine
from coordinator.service.data.kept_images import KeptImageBook
from coordinator.service.operations import Operations
from coordinator.trust.caller import Caller
from coordinator.views.images import jobs_with
from coordinator.views.nodes import unknown_node
from muster.domain.data.kept.image import ImageFate, ImageView, ToldImage
from muster.domain.errors import ConflictError
from muster.domain.fleet.features import CLEAR_IMAGES
from muster.domain.ids import NodeId

IMAGES_PAGE = 500
"""Images of nodes that are told in one answer."""


class ImageOperations:
    """What callers may do with the images that agents have pulled."""

    def __init__(self, operations: Operations, engine: Engine, book: KeptImageBook) -> None:
        self._operations = operations
        self._engine = engine
        self._book = book

    async def list(
        self, caller: Caller, *, node: str = "", after: tuple[str, str] | None = None
    ) -> tuple[Sequence[ImageView], bool]:
        """Images by node and id, and whether more follow; of all nodes where none is named.

        `after`: node and id of the last one of the page before.
        """

        def read(cluster: Cluster, _: datetime) -> Sequence[ImageView]:
            if node and NodeId(node) not in cluster.nodes:
                raise unknown_node(NodeId(node))
            self._book.forget_all_but(cluster.nodes)
            nodes = [NodeId(node)] if node else sorted(self._book.nodes(), key=key_of)
            found = ((each, image) for each in nodes for image in self._images(each, after))
            return [
                replace(self._view(each, image), jobs=tuple(jobs_with(cluster, each, image)))
                for each, image in islice(found, IMAGES_PAGE + 1)
            ]

        async with self._operations.begin(caller, "images.list"):
            found = await self._engine.query(read)
            return found[:IMAGES_PAGE], len(found) > IMAGES_PAGE

    async def clear(self, caller: Caller, node: str, images: tuple[str, ...]) -> Sequence[ImageFate]:
        """Take images away from one node that nobody uses; what has become of each. None named: all that can go.

        Raises UnavailableError where the node cannot be told, and ConflictError where its agent cannot do it.
        """

        def refuse_old(cluster: Cluster, _: datetime) -> None:
            if name not in cluster.nodes:
                raise unknown_node(name)
            if CLEAR_IMAGES not in cluster.nodes[name].features:
                raise ConflictError(f"the agent of node {node} is too old to clear images; upgrade it first")

        name = NodeId(node)
        async with self._operations.begin(caller, "images.clear", " ".join((node, *images))):
            await self._engine.query(refuse_old)
            return (await self._book.clear(name, images)).fates

    def _images(self, node: NodeId, after: tuple[str, str] | None) -> Iterator[ToldImage]:
        for image in self._book.of(node):
            if after is None or (key_of(node), image.id) > (key_of(NodeId(after[0])), after[1]):
                yield image

    def _view(self, node: NodeId, image: ToldImage) -> ImageView:
        """An image without the jobs that use it."""
        return ImageView(
            node=node,
            id=image.id,
            names=image.names,
            bytes=image.bytes,
            used_at=image.used_at,
            connected=self._book.is_connected(node),
        )
