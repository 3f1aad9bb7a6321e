"""The SDK for the images that agents have pulled onto their nodes."""

from collections.abc import Collection
from typing import Any

from muster.client.calls import Calls
from muster.domain.data.kept.image import ImageFate, ImageView
from muster.domain.data.kept.pull import PullView
from muster.domain.errors import InvalidJobError
from muster.rpc.v1 import nodes_pb2 as pb
from muster.rpc.v1.nodes_pb2_grpc import ImageServiceStub
from muster.wire.data.image_pulls import pull_view_from_wire
from muster.wire.data.pulled_images import image_fate_from_wire, image_view_from_wire

CLEARED_WITHIN = 40.0
"""Seconds in which a coordinator tells what has become of images; more than it gives the agent."""


class ImagesClient:
    """Images that agents have pulled, reached as `client.images`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    @property
    def _stub(self) -> Any:  # noqa: ANN401 - that of ImageService, whose two kinds mypy cannot tell apart here
        return self._calls.stub(ImageServiceStub)

    async def list(self, *, node: str = "") -> tuple[ImageView, ...]:
        """Images by node and id; empty: of all nodes.

        >>> bytes_of_images = sum(image.bytes for image in await client.images.list(node="gpu-a"))
        """
        found: list[ImageView] = []
        place = ""
        while True:
            images, place = await self.page(node=node, page=place)
            found.extend(images)
            if not place:
                return tuple(found)

    async def page(self, *, node: str = "", page: str = "") -> tuple[tuple[ImageView, ...], str]:
        """A part of the list, and what leads to the next one; empty after the last one.

        >>> images, following = await client.images.page(node="gpu-a")
        """
        after_node, _, after_image = page.partition("/")
        if page and not (after_node and after_image):
            raise InvalidJobError(f"{page!r} is no page of a list of images; begin without one")
        request = pb.ListImagesRequest(node=node, after_node=after_node, after_image=after_image)
        answer = await self._calls.ask(self._stub.List, request)
        found = tuple(map(image_view_from_wire, answer.images))
        return found, f"{found[-1].node}/{found[-1].id}" if answer.more else ""

    async def clear(self, node: str, images: Collection[str] = ()) -> tuple[ImageFate, ...]:
        """Take images away from a node that its agent has pulled and nobody uses; what has become of each.

        `images`: their names or ids; none: all. Raises UnavailableError while the node is away.

        >>> removed = [fate.image for fate in await client.images.clear("gpu-a") if fate.outcome == "removed"]
        """
        request = pb.ClearImagesRequest(node=node, images=images)
        # Never repeated: a second answer would not tell what the first order removed.
        answer = await self._calls.ask(self._stub.Clear, request, pauses=(), patience=CLEARED_WITHIN)
        return tuple(map(image_fate_from_wire, answer.fates))

    async def pull(self, image: str, *, nodes: Collection[str] = (), pool: str = "", project: str = "") -> PullView:
        """Have nodes pull an image before a job needs it; how that begins, without waiting for them.

        `nodes`: their names; none: all of the pool, or all that have a container engine. The registry is shown the
        credentials of the project, which is the only one of yours where none is named.

        >>> pull = await client.images.pull("registry.example.com/team/train:1.4", pool="h100")
        """
        request = pb.PullImageRequest(image=image, nodes=nodes, pool=pool, project=project)
        answer = await self._calls.ask(self._stub.Pull, request, pauses=())  # a second one would pull once more
        return pull_view_from_wire(answer.pull)

    async def pulled(self, pull: str, *, revision: int = 0) -> PullView:
        """How far a pull is; waits for some seconds until that is other than at a revision.

        Raises UnknownNameError once the coordinator has forgotten the pull, as it does when it starts anew.

        >>> while not pull.is_over:
        ...     pull = await client.images.pulled(pull.id, revision=pull.revision)
        """
        answer = await self._calls.ask(self._stub.Pulled, pb.PulledRequest(pull=pull, revision=revision))
        return pull_view_from_wire(answer.pull)
