"""The fleet over HTTP: nodes, pools and windows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from console.api.answers import many, one
from console.api.asking import AsCaller
from console.api.mirrored.lists import FromMirror, Sort, Where
from console.api.reading import Fields
from console.api.route import Listed, Route
from console.mirror.rows import NODE_FIELDS
from muster.domain.feed import FeedPart
from muster.domain.fleet.node import NodeView
from muster.domain.fleet.standing_view import PoolView
from muster.domain.fleet.window import Window

MOST_LISTED_NODES = 100_000
"""Nodes of one answer."""


class CordonWish(Fields):
    """Why a node takes nothing new, and what becomes of what runs there."""

    reason: str = Field(default="", max_length=500)
    restart_jobs: bool = Field(default=False, description="Have what runs there begin anew elsewhere, at once.")


class LabelPatch(Fields):
    """Labels of a node that are to be other than they are."""

    labels: Mapping[str, str] = Field(default_factory=dict)
    removed: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedLabels:
    """The labels that tokens and operators have given a node."""

    labels: Mapping[str, str]
    changed: bool
    """Whether they are other than before."""


async def list_nodes(client: AsCaller, mirror: FromMirror, where: Where = (), sort: Sort = "") -> Response:
    """All nodes, by name; those for which `where` holds, in the order of `sort`."""
    if where or sort:
        mirrored = await mirror.rows(FeedPart.NODES, NODE_FIELDS, where, sort, MOST_LISTED_NODES, "")
        assert mirrored is not None, "nobody else can answer"
        return mirrored.of()
    return many(await client.nodes.list())


async def get_node(request: Request, client: AsCaller, node: str) -> Response:
    """One node: what it has, what runs there, what is wrong with it."""
    return one(request, await client.nodes.get(node))


async def remove_node(client: AsCaller, node: str) -> Response:
    """Give up a node that will not come back."""
    await client.nodes.remove(node)
    return Response(status_code=HTTPStatus.NO_CONTENT)


async def cordon_node(request: Request, client: AsCaller, node: str, cordon: CordonWish | None = None) -> Response:
    """Have nothing new placed on a node."""
    wish = cordon or CordonWish()
    return one(request, await client.nodes.cordon(node, reason=wish.reason, restart_jobs=wish.restart_jobs))


async def uncordon_node(request: Request, client: AsCaller, node: str) -> Response:
    """Have jobs placed on a node again."""
    return one(request, await client.nodes.uncordon(node))


async def label_node(request: Request, client: AsCaller, node: str, patch: LabelPatch) -> Response:
    """Change labels of a node; those that its agent says itself stay."""
    labels, changed = await client.nodes.label(node, patch.labels, patch.removed)
    return one(request, ChangedLabels(labels=labels, changed=changed))


async def list_pools(client: AsCaller) -> Response:
    """All pools, with their nodes and what jobs hold there."""
    return many(await client.pools.list())


async def list_windows(client: AsCaller) -> Response:
    """Windows in which nodes are out of service, or for one project alone."""
    return many(await client.windows.list())


FLEET_ROUTES = (
    Route(verb="GET", path="/v1/nodes", operation="nodes.list", handler=list_nodes, answer=Listed(NodeView)),
    Route(verb="GET", path="/v1/nodes/{node}", operation="nodes.get", handler=get_node, answer=NodeView),
    Route(
        verb="DELETE",
        path="/v1/nodes/{node}",
        operation="nodes.remove",
        handler=remove_node,
        answer=None,
        status=HTTPStatus.NO_CONTENT,
    ),
    Route(
        verb="POST",
        path="/v1/nodes/{node}/cordon",
        operation="nodes.cordon",
        handler=cordon_node,
        answer=NodeView,
        example="--json '{\"reason\": \"a fan is broken\"}' '{url}/v1/nodes/{node}/cordon'",
    ),
    Route(
        verb="POST",
        path="/v1/nodes/{node}/uncordon",
        operation="nodes.uncordon",
        handler=uncordon_node,
        answer=NodeView,
    ),
    Route(
        verb="PATCH",
        path="/v1/nodes/{node}/labels",
        operation="nodes.label",
        handler=label_node,
        answer=ChangedLabels,
        example='-X PATCH --json \'{"labels": {"rack": "7"}}\' \'{url}/v1/nodes/{node}/labels\'',
    ),
    Route(verb="GET", path="/v1/pools", operation="pools.list", handler=list_pools, answer=Listed(PoolView)),
    Route(verb="GET", path="/v1/windows", operation="windows.list", handler=list_windows, answer=Listed(Window)),
)
