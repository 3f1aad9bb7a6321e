"""The synchronous form of `muster.client.services.images`, made from it by `make sync`; change that one."""

from collections.abc import Collection

from muster.client.blocking.loop_thread import LoopThread
from muster.client.services.images import ImagesClient
from muster.domain.data.kept.image import ImageFate, ImageView


class SyncImagesClient:
    """Images that agents have pulled, reached as `client.images`."""

    def __init__(self, own: ImagesClient, loop: LoopThread) -> None:
        self._own = own
        self._loop = loop

    def list(self, *, node: str = "") -> tuple[ImageView, ...]:
        """Images by node and id; empty: of all nodes.

        >>> bytes_of_images = sum(image.bytes for image in client.images.list(node="gpu-a"))
        """
        return self._loop.run(self._own.list(node=node))

    def page(self, *, node: str = "", page: str = "") -> tuple[tuple[ImageView, ...], str]:
        """A part of the list, and what leads to the next one; empty after the last one.

        >>> images, following = client.images.page(node="gpu-a")
        """
        return self._loop.run(self._own.page(node=node, page=page))

    def clear(self, node: str, images: Collection[str] = ()) -> tuple[ImageFate, ...]:
        """Take images away from a node that its agent has pulled and nobody uses; what has become of each.

        `images`: their names or ids; none: all. Raises UnavailableError while the node is away.

        >>> removed = [fate.image for fate in client.images.clear("gpu-a") if fate.outcome == "removed"]
        """
        return self._loop.run(self._own.clear(node, images))
