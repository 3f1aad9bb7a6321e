"""The synchronous form of `muster.client.services.images`, made from it by `make sync`; change that one."""

from collections.abc import Collection

from muster.client.blocking.loop_thread import LoopThread
from muster.client.services.images import ImagesClient
from muster.domain.data.kept.image import ImageFate, ImageView
from muster.domain.data.kept.pull import PullView


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

    def pull(self, image: str, *, nodes: Collection[str] = (), pool: str = "", project: str = "") -> PullView:
        """Have nodes pull an image before a job needs it; how that begins, without waiting for them.

        `nodes`: their names; none: all of the pool, or all that have a container engine. The registry is shown the
        credentials of the project, which is the only one of yours where none is named.

        >>> pull = client.images.pull("registry.example.com/team/train:1.4", pool="h100")
        """
        return self._loop.run(self._own.pull(image, nodes=nodes, pool=pool, project=project))

    def pulled(self, pull: str, *, revision: int = 0) -> PullView:
        """How far a pull is; waits for some seconds until that is other than at a revision.

        Raises UnknownNameError once the coordinator has forgotten the pull, as it does when it starts anew.

        >>> while not pull.is_over:
        ...     pull = client.images.pulled(pull.id, revision=pull.revision)
        """
        return self._loop.run(self._own.pulled(pull, revision=revision))
