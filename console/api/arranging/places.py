"""Pools and windows over HTTP: set up, changed and removed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from typing import Annotated

from fastapi import Query
from pydantic import AwareDatetime, Field
from starlette.requests import Request
from starlette.responses import Response

from console.api.answers import one
from console.api.asking import AsCaller
from console.api.reading import Fields, Seconds, span_of
from console.api.route import Route
from muster.domain.fleet.pool import Pool, PortionRule
from muster.domain.fleet.window import DEFAULT_NOTICE, Window, WindowMode
from muster.domain.ids import NodeId


class PoolTerms(Fields):
    """What a pool is; what is left out is as in a pool that nobody has set up."""

    selector: Mapping[str, str] = Field(default_factory=dict, description="Labels of its nodes; none: by its name.")
    longest_run: Seconds | None = Field(default=None, description="Seconds that user code may run there; none: any.")
    levels: tuple[str, ...] = Field(default=(), description="Labels that say where nodes are, the coarsest first.")
    enforce: PortionRule = PortionRule.TELL


class WindowTerms(Fields):
    """When nodes take nothing, and which."""

    begins: AwareDatetime
    ends: AwareDatetime
    nodes: tuple[str, ...] = ()
    labels: Mapping[str, str] = Field(default_factory=dict, description="All nodes that carry these, as well.")
    project: str = Field(default="", description="Whose jobs they take all the same.")
    reason: str = Field(default="", max_length=500)
    notice: Seconds = Field(default=DEFAULT_NOTICE.total_seconds(), description="Seconds before the begin.")
    mode: WindowMode = WindowMode.WAIT


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrangedPool:
    """A pool as it is now."""

    pool: Pool
    warnings: Sequence[str]
    """What may not be meant, a sentence each."""


async def put_pool(
    request: Request,
    client: AsCaller,
    pool: str,
    terms: PoolTerms,
    anyway: Annotated[bool, Query(description="Although no node is in it.")] = False,
) -> Response:
    """Set up a pool; one of that name is replaced."""
    wanted = Pool(
        name=pool,
        selector=terms.selector,
        longest_run=span_of(terms.longest_run),
        levels=terms.levels,
        enforce=terms.enforce,
    )
    return one(request, ArrangedPool(pool=wanted, warnings=await client.pools.put(wanted, anyway=anyway)))


async def remove_pool(client: AsCaller, pool: str) -> Response:
    """Forget what was set of a pool; its nodes are then where their labels say."""
    await client.pools.remove(pool)
    return Response(status_code=HTTPStatus.NO_CONTENT)


async def put_window(request: Request, client: AsCaller, window: str, terms: WindowTerms) -> Response:
    """Set up a window; one of that name is replaced."""
    wanted = Window(
        name=window,
        begins=terms.begins,
        ends=terms.ends,
        nodes=tuple(map(NodeId, terms.nodes)),
        labels=terms.labels,
        project=terms.project,
        reason=terms.reason,
        notice=timedelta(seconds=terms.notice),
        mode=terms.mode,
    )
    return one(request, await client.windows.put(wanted))


async def remove_window(request: Request, client: AsCaller, window: str) -> Response:
    """Remove a window, so that its nodes take jobs again; the window as it was."""
    return one(request, await client.windows.remove(window))


PLACE_ROUTES = (
    Route(
        verb="PUT",
        path="/v1/pools/{pool}",
        operation="pools.put",
        handler=put_pool,
        answer=ArrangedPool,
        example='-X PUT --json \'{"selector": {"gpu": "h100"}}\' \'{url}/v1/pools/{pool}\'',
    ),
    Route(
        verb="DELETE",
        path="/v1/pools/{pool}",
        operation="pools.remove",
        handler=remove_pool,
        answer=None,
        status=HTTPStatus.NO_CONTENT,
    ),
    Route(
        verb="PUT",
        path="/v1/windows/{window}",
        operation="windows.put",
        handler=put_window,
        answer=Window,
        example=(
            '-X PUT --json \'{"begins": "2027-01-05T08:00:00Z", "ends": "2027-01-05T12:00:00Z", "nodes": ["{node}"]}\' '
            "'{url}/v1/windows/{window}'"
        ),
    ),
    Route(verb="DELETE", path="/v1/windows/{window}", operation="windows.remove", handler=remove_window, answer=Window),
)
