"""Metrics for Prometheus, and where it finds what else runs on the nodes."""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated

from fastapi import Query
from starlette.datastructures import State
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from console.alerts.alert_watch import AlertWatch
from console.api.asking import AsCaller
from console.api.route import Route, TextOf
from console.mirror.follower import MirrorFollower
from console.telemetry.console_metrics import ConsoleFigures, of_console
from console.telemetry.coordinator_metrics import of_coordinator
from console.telemetry.exposition import CONTENT_TYPE, Metric, exposition, metric_of
from console.telemetry.fleet_metrics import of_fleet
from console.telemetry.history.recorder import HistoryRecorder
from console.telemetry.node_metrics import of_nodes
from console.telemetry.runs.run_counts import RunCounts
from console.upstream.queue_lines import queue_lines
from muster.domain.feed import FeedPart
from muster.domain.fleet.access import Access, seen_projects
from muster.domain.fleet.node import NodeView

_NO_LABEL = re.compile(r"[^a-zA-Z0-9_]")

Pools = Annotated[list[str], Query(alias="pool", description="Only nodes of these pools; none: all.")]
Port = Annotated[int, Query(ge=1, le=65535, description="The port of what runs on the nodes.")]


async def show_fleet_metrics(request: Request, client: AsCaller) -> Response:
    """Say in figures how the fleet is: nodes, GPUs, shares of projects and the queue."""
    async with asyncio.TaskGroup() as tasks:
        nodes = tasks.create_task(client.nodes.list(), name="nodes")
        samples = tasks.create_task(client.telemetry.of_nodes(), name="samples")
        units = tasks.create_task(client.projects.quotas(), name="quotas")
        queue = tasks.create_task(queue_lines(client), name="queue")
        myself = tasks.create_task(client.accounts.myself(), name="account")
        figures = tasks.create_task(client.fleet.figures(), name="coordinator")
    now = datetime.now(UTC)
    of_history, grants = await _of_history(request.app.state.history), myself.result().grants
    of_jobs = _of_jobs(request.app.state.follower, request.app.state.runs, seen_projects(grants))
    of_itself = of_console(_figures_of(request.app.state, grants))
    fleet = of_fleet(nodes.result(), samples.result(), units.result(), queue.result(), now)
    return _text((*fleet, *of_jobs, *of_coordinator(figures.result()), *of_itself, *of_history))


async def show_node_metrics(client: AsCaller, pool: Pools = []) -> Response:  # noqa: B006 - FastAPI copies it
    """Say in figures what every node, GPU and execution does."""
    nodes = [node for node in await client.nodes.list() if not pool or node.pool in pool]
    samples = await client.telemetry.of_nodes([node.name for node in nodes] if pool else ())
    return _text(of_nodes(nodes, samples))


async def list_prometheus_targets(client: AsCaller, port: Port = 9100, pool: Pools = []) -> Response:  # noqa: B006 - as above
    """Name the nodes for Prometheus' HTTP service discovery: for exporters that a site runs on them itself."""
    nodes = (node for node in await client.nodes.list() if not pool or node.pool in pool)
    return JSONResponse([{"targets": [_at(node, port)], "labels": _labels(node)} for node in nodes])


def _of_jobs(
    follower: MirrorFollower | None, runs: RunCounts | None, projects: Collection[str] | None
) -> Sequence[Metric]:
    """Jobs as this console has heard of them, if it has a token of its own; of these projects, None: of all."""
    if follower is None or runs is None:
        return ()
    jobs = Metric("muster_jobs", "Jobs by project and phase.")
    rows = () if follower.current is None else follower.current.of(FeedPart.JOBS)
    counted = Counter((row.scope, str(row.fields["phase"])) for row in rows)
    for (project, phase), count in sorted(counted.items()):
        if projects is None or project in projects:
            jobs.add(count, project=project, phase=phase)
    return (jobs, *runs.metrics(projects))


def _figures_of(state: State, grants: Mapping[str, Access]) -> ConsoleFigures:
    follower: MirrorFollower | None = state.follower
    watch: AlertWatch | None = state.alerts
    alerts = () if watch is None else watch.book.alerts(grants)
    return ConsoleFigures(
        mirror_current=None if follower is None else follower.current is not None,
        mirror_age=None if follower is None else follower.age,
        viewers=state.seats.taken,
        requests=state.answered,
        tries={} if state.streaks is None else state.streaks.tries,
        certificate_ends=state.certificate_ends,
        alerts=Counter((each.kind, each.severity) for each in alerts),
    )


async def _of_history(history: HistoryRecorder | None) -> Sequence[Metric]:
    """How the history of this console is, if it keeps one."""
    if history is None:
        return ()
    size = await asyncio.to_thread(lambda: history.size)
    lost = "Samples and bands that the disk did not take since the start."
    return (
        metric_of("muster_console_history_bytes", "Bytes on the disk of what nodes and gangs used.", size),
        metric_of("muster_console_history_dropped", lost, history.dropped),
    )


def _text(metrics: Iterable[Metric]) -> Response:
    return StreamingResponse(_pieces(metrics), media_type=CONTENT_TYPE)


async def _pieces(metrics: Iterable[Metric]) -> AsyncIterator[str]:
    for piece in exposition(metrics):
        yield piece
        await asyncio.sleep(0)  # others have their turn


def _at(node: NodeView, port: int) -> str:
    return f"[{node.address}]:{port}" if ":" in node.address else f"{node.address}:{port}"


def _labels(node: NodeView) -> dict[str, str]:
    """Labels as service discoveries name them: https://prometheus.io/docs/prometheus/latest/http_sd/."""
    own = {"__meta_muster_node": node.name, "__meta_muster_pool": node.pool, "__meta_muster_state": str(node.state)}
    labels = {f"__meta_muster_label_{_NO_LABEL.sub('_', name)}": value for name, value in node.inventory.labels.items()}
    return own | labels


PROMETHEUS_ROUTES = (
    Route(
        verb="GET",
        path="/metrics",
        operation="nodes.samples",
        handler=show_fleet_metrics,
        answer=TextOf("text/plain"),
    ),
    Route(
        verb="GET",
        path="/metrics/nodes",
        operation="nodes.samples",
        handler=show_node_metrics,
        answer=TextOf("text/plain"),
        example="'{url}/metrics/nodes?pool=h100'",
    ),
    Route(
        verb="GET",
        path="/v1/prometheus/targets",
        operation="nodes.list",
        handler=list_prometheus_targets,
        answer=TextOf("application/json"),
        example="'{url}/v1/prometheus/targets?port=9400'",
    ),
)
