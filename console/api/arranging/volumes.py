"""Volumes that nodes keep over HTTP: which there are, and removing one."""

from http import HTTPStatus
from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from console.api.answers import many
from console.api.asking import AsCaller
from console.api.reading import Page
from console.api.route import Listed, Route
from muster.domain.data.volume import KeptVolumeView


async def list_volumes(
    client: AsCaller,
    project: Annotated[str, Query(description="Only those of this project; empty: of all.")] = "",
    node: Annotated[str, Query(description="Only those of this node; empty: of all.")] = "",
    page: Page = "",
) -> Response:
    """List the volumes that nodes keep between jobs, with the jobs that use them."""
    found, following = await client.volumes.page(project=project, node=node, page=page)
    return many(found, following)


async def remove_volume(client: AsCaller, node: str, project: str, volume: str) -> Response:
    """Remove one volume from one node, with all that lies in it; one that a job uses stays."""
    await client.volumes.remove(node, project, volume)
    return Response(status_code=HTTPStatus.NO_CONTENT)


VOLUME_ROUTES = (
    Route(
        verb="GET",
        path="/v1/volumes",
        operation="volumes.list",
        handler=list_volumes,
        answer=Listed(KeptVolumeView),
    ),
    Route(
        verb="DELETE",
        path="/v1/nodes/{node}/volumes/{project}/{volume}",
        operation="volumes.remove",
        handler=remove_volume,
        answer=None,
        status=HTTPStatus.NO_CONTENT,
    ),
)
