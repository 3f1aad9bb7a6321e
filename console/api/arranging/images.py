"""Images that agents have pulled onto their nodes over HTTP: which there are, clearing and pulling some."""

from http import HTTPStatus
from typing import Annotated

from fastapi import Query
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from console.api.answers import many, one
from console.api.asking import AsCaller
from console.api.reading import LARGEST_EVENT, Fields, Page
from console.api.route import Listed, Route
from muster.domain.data.kept.image import ImageFate, ImageView
from muster.domain.data.kept.pull import PullView


class ImageWish(Fields):
    """Which images are to go; what is left out: all that nobody uses."""

    images: tuple[str, ...] = Field(default=(), description="Their names or ids; none: all that nobody uses.")


class PullWish(Fields):
    """Which image is to be pulled, and where."""

    image: str = Field(description="Its name, as in a job file.")
    nodes: tuple[str, ...] = Field(default=(), description="The nodes; none: all of the pool.")
    pool: str = Field(default="", description="The pool; empty, and no nodes: all that have a container engine.")
    project: str = Field(default="", description="Whose credentials the registry is shown; empty: your only project.")


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


async def pull_image(client: AsCaller, request: Request, wish: PullWish) -> Response:
    """Have nodes pull an image before a job needs it; how that begins, without waiting for them."""
    pull = await client.images.pull(wish.image, nodes=wish.nodes, pool=wish.pool, project=wish.project)
    return one(request, pull, HTTPStatus.ACCEPTED)


async def get_pull(
    client: AsCaller,
    request: Request,
    pull: str,
    revision: Annotated[int, Query(ge=0, le=LARGEST_EVENT, description="What the caller knows; 0: nothing.")] = 0,
) -> Response:
    """How far a pull is; the answer waits for some seconds until that is other than at the revision."""
    return one(request, await client.images.pulled(pull, revision=revision))


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
    Route(
        verb="POST",
        path="/v1/images/pulls",
        operation="images.pull",
        handler=pull_image,
        answer=PullView,
        status=HTTPStatus.ACCEPTED,
        example='--json \'{"image": "team/train:1.4", "pool": "h100"}\' \'{url}/v1/images/pulls\'',
    ),
    Route(
        verb="GET",
        path="/v1/images/pulls/{pull}",
        operation="images.watch",
        handler=get_pull,
        answer=PullView,
    ),
)
