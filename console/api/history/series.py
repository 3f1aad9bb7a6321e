"""What nodes and ranks of jobs used over time, for plots."""

import asyncio
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Annotated

from fastapi import Depends, Query
from starlette.requests import Request
from starlette.responses import Response

from console.api.answers import many
from console.api.asking import AsCaller
from console.api.reading import AttemptNumber, Ranks, Time
from console.api.route import Listed, Route
from console.telemetry.history.bands import BandSeries, band_series
from console.telemetry.history.grain import ONE_HOUR
from console.telemetry.history.recorder import HistoryRecorder
from console.telemetry.history.series import UsageSeries, series_of_node, series_of_rank
from muster.domain.errors import InvalidJobError, UnavailableError
from muster.domain.ids import AttemptId, GpuUuid
from muster.domain.jobs.view import ExecutionView, JobView
from muster.domain.telemetry.quantities import Quantity

PLOTTED_VALUES = 300
"""Values of one series unless somebody wants more or fewer."""
MOST_PLOTTED_VALUES = 3_000
"""Values of one series at the most."""
PLOTTED_RANKS = 64
"""Ranks of one answer; the first ones, where nobody names any."""
PLOTTED_ATTEMPTS = 10
"""Attempts of one answer with bands, the newest ones."""
PLOTTED_TIME = timedelta(hours=1)
"""The time until now that is told of a node, unless somebody names another."""

Quantities = Annotated[Sequence[Quantity], Query(alias="quantity", description="Quantities; none: all.")]
Most = Annotated[int, Query(ge=1, le=MOST_PLOTTED_VALUES, description="Values of a series; of more, spans are joined.")]


def _history(request: Request) -> HistoryRecorder | None:
    found: HistoryRecorder | None = request.app.state.history
    return found


History = Annotated[HistoryRecorder | None, Depends(_history)]
"""The history, if there is one; a handler asks the coordinator first whether its caller may look at what it reads."""


async def read_node_history(  # noqa: PLR0913 - one for each wish
    *,
    client: AsCaller,
    history: History,
    node: str,
    quantity: Quantities = (),
    gpu: Annotated[Sequence[str], Query(description="GPUs of the node by UUID; none: the node as a whole.")] = (),
    since: Time = None,
    until: Time = None,
    most: Most = PLOTTED_VALUES,
) -> Response:
    """Read what a node used, a series for each quantity; of the last hour, unless a time is named."""
    found = await client.nodes.get(node)
    end = until or datetime.now(UTC)
    begin = _begin(since or end - PLOTTED_TIME, end)
    samples = await _kept(history).samples(found.name, begin, end, most)
    return many(await asyncio.to_thread(series_of_node, samples, [GpuUuid(each) for each in gpu], quantity))


async def read_job_history(  # noqa: PLR0913 - one for each wish
    *,
    client: AsCaller,
    history: History,
    job: str,
    quantity: Quantities = (),
    rank: Ranks = (),
    attempt: AttemptNumber = None,
    since: Time = None,
    until: Time = None,
    most: Most = PLOTTED_VALUES,
) -> Response:
    """Read what ranks of a job used in one attempt, a series for each rank and quantity; of its whole time."""
    view = await client.jobs.get(job, attempt=attempt)
    number, executions = _executions(view, rank, attempt)
    ended = next((each.ended_at for each in view.attempts if each.number == number), None)
    end = min(until or datetime.now(UTC), ended or datetime.max.replace(tzinfo=UTC))
    begin = _begin(max(since or view.submitted_at, view.submitted_at), end)
    kept, found = _kept(history), list[UsageSeries]()
    for node, members in groupby(executions, lambda each: each.node):  # ranks of one node follow each other
        assert node is not None, "only those are here that were placed"
        samples = await kept.samples(node, begin, end, most)
        for each in members:
            found += series_of_rank(samples, each.id, each.gpus, quantity, attempt=number, rank=each.rank)
    return many(found)


async def read_job_bands(  # noqa: PLR0913 - one for each wish
    *,
    client: AsCaller,
    history: History,
    job: str,
    quantity: Quantities = (),
    attempt: AttemptNumber = None,
    since: Time = None,
    until: Time = None,
    most: Most = PLOTTED_VALUES,
) -> Response:
    """Read the least, the median and the greatest over the ranks of a gang, a series for each attempt and quantity."""
    view = await client.jobs.get(job, attempt=attempt)
    kept, found = _kept(history), list[BandSeries]()
    for each in view.attempts[-PLOTTED_ATTEMPTS:]:
        if attempt is None or each.number == attempt:
            end = min(until or datetime.now(UTC), each.ended_at or datetime.max.replace(tzinfo=UTC))
            begin = max(since or view.submitted_at, each.placed_at or view.submitted_at, end - ONE_HOUR.kept)
            bands = await kept.bands(AttemptId(view.id, each.number), min(begin, end), end, most)
            found += band_series(bands, each.number, quantity)
    return many(found)


def _executions(view: JobView, ranks: Collection[int], attempt: int | None) -> tuple[int, Sequence[ExecutionView]]:
    """The executions of an attempt that are wanted and were placed, with its number."""
    found = [each for each in view.attempts if attempt is None or each.number == attempt]
    if not found:
        return 0, ()
    placed = [each for each in found[-1].executions if each.node is not None and (not ranks or each.rank in ranks)]
    return found[-1].number, placed[:PLOTTED_RANKS]


def _kept(history: HistoryRecorder | None) -> HistoryRecorder:
    if history is None:
        raise UnavailableError("this console keeps no history: it is started with --token-file and --state")
    return history


def _begin(begin: datetime, end: datetime) -> datetime:
    """The beginning of what is read; raises InvalidJobError for an end before it."""
    if begin > end:
        raise InvalidJobError(f"since={begin.isoformat()} is after the end of what is asked for")
    return max(begin, end - ONE_HOUR.kept)


HISTORY_ROUTES = (
    Route(
        verb="GET",
        path="/v1/jobs/{job}/metrics",
        operation="jobs.get",
        handler=read_job_history,
        answer=Listed(UsageSeries),
        example="'{url}/v1/jobs/{job}/metrics?quantity=busy&quantity=watts&rank=0'",
    ),
    Route(
        verb="GET",
        path="/v1/jobs/{job}/bands",
        operation="jobs.get",
        handler=read_job_bands,
        answer=Listed(BandSeries),
        example="'{url}/v1/jobs/{job}/bands?quantity=watts'",
    ),
    Route(
        verb="GET",
        path="/v1/nodes/{node}/metrics",
        operation="nodes.get",
        handler=read_node_history,
        answer=Listed(UsageSeries),
        example="'{url}/v1/nodes/{node}/metrics?quantity=cpus&since=2026-11-27T00:00:00Z'",
    ),
)
