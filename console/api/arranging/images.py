"""Images that agents have pulled onto their nodes over HTTP: which there are, and clearing some."""

from typing import Annotated

from fastapi import Query
from pydantic import Field
from starlette.responses import Response

from console.api.answers import many
from console.api.asking import AsCaller
from console.api.reading import Fields, Page
from console.api.route import Listed, Route
from muster.domain.data.kept.image import ImageFate, ImageView


class ImageWish(Fields):
    """Which images are to go; what is left out: all that nobody uses."""

    images: tuple[str, ...] = Field(default=(), description="Their names or ids; none: all that nobody uses.")


async def list_images(
    client: AsCaller,
    node: Annotated[str, Query(description="Only those of this node; empty: of all.")] = "",
    page: Page = "",
) -> Response:
    """List the images that agents have pulled onto their nodes, with the jobs that use them."""
    found, following = await client.images.page(node=node, page=page)
    return many(found, following)


async def clear_images(client: AsCaller, node: str, wish: ImageWish | None = None) -> Response:
    """Take images away from one node that its agent has pulled and nobody uses; what has become of each."""
    return many(await client.images.clear(node, (wish or ImageWish()).images))


IMAGE_ROUTES = (
    Route(
        verb="GET",
        path="/v1/images",
        operation="images.list",
        handler=list_images,
        answer=Listed(ImageView),
    ),
    Route(
        verb="POST",
        path="/v1/nodes/{node}/images/clear",
        operation="images.clear",
        handler=clear_images,
        answer=Listed(ImageFate),
        example="--json '{\"images\": [\"team/train:1.4\"]}' '{url}/v1/nodes/{node}/images/clear'",
    ),
)
