"""What the SDK makes of a coordinator's answers, over a real connection."""

import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import grpc
import pytest

from muster import Client
from muster.domain.errors import (
    ConflictError,
    InvalidJobError,
    MusterError,
    PermissionDeniedError,
    UnavailableError,
    UnknownNameError,
)
from muster.domain.fleet.node import Inventory, NodeState, NodeView
from muster.domain.ids import JobId, NodeId
from muster.domain.jobs.explanation import Explanation
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.view import JobView, LogLine
from muster.domain.telemetry.coordinator_figures import CoordinatorFigures
from muster.rpc.v1 import jobs_pb2
from tests.integration.canned_coordinator import Broken, Canned, serving

AT = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
SPEC = JobSpec(name="ring", roles=(Role(count=3, command=("python", "ring.py")),))

Item = TypeVar("Item")
Serve = Callable[[Canned], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start a coordinator that answers from values; stopped after the test."""
    with ExitStack() as running:
        yield lambda canned: running.enter_context(serving(canned))


def job(id_: str = "j1", phase: JobPhase = JobPhase.RUNNING, *, name: str = "ring", summary: str = "") -> JobView:
    return JobView(id=JobId(id_), spec=replace(SPEC, name=name), phase=phase, summary=summary, submitted_at=AT)


def node(name: str) -> NodeView:
    return NodeView(
        name=NodeId(name),
        state=NodeState.READY,
        address="10.0.0.1",
        inventory=Inventory(cpus=8, memory=2**35),
    )


def line(rank: int, seconds: float, text: str) -> LogLine:
    return LogLine(rank=rank, stream="stdout", time=AT + timedelta(seconds=seconds), text=text.encode())


async def all_of(items: AsyncIterator[Item]) -> list[Item]:
    return [item async for item in items]


async def test_a_submitted_job_arrives_as_it_was_written(serve: Serve) -> None:
    async with Client(serve(Canned())) as client:
        accepted = await client.jobs.submit(SPEC)
        assert await client.jobs.get("new1") == accepted

    assert accepted.spec == SPEC


async def test_a_dry_run_makes_no_job(serve: Serve) -> None:
    canned = Canned()

    async with Client(serve(canned)) as client:
        checked = await client.jobs.submit(SPEC, dry_run=True, queue_anyway=True)

    assert checked.id == ""
    assert canned.jobs == []
    assert canned.asked[0].queue_anyway


async def test_submitting_again_after_a_lost_answer_repeats_the_same_key(serve: Serve) -> None:
    canned = Canned(refusals=[(Broken.UNAVAILABLE, "going down"), (Broken.UNAVAILABLE, "going down")])

    async with Client(serve(canned)) as client:
        await client.jobs.submit(SPEC)
        await client.jobs.submit(SPEC)

    first, second, third, other = (request.idempotency_key for request in canned.asked)
    assert first == second == third
    assert other != first


async def test_deleting_is_never_repeated(serve: Serve) -> None:
    canned = Canned(jobs=[job(phase=JobPhase.FAILED)], refusals=[(Broken.UNAVAILABLE, "going down")])

    async with Client(serve(canned)) as client:
        with pytest.raises(UnavailableError):
            await client.jobs.delete("j1")
        assert await client.jobs.delete("j1") == "j1"

    assert len(canned.asked) == 2


async def test_jobs_are_read_page_by_page_until_the_last(serve: Serve) -> None:
    canned = Canned(jobs=[job(f"j{number}") for number in range(5)], page=2)

    async with Client(serve(canned)) as client:
        assert [found.id for found in await all_of(client.jobs.list())] == ["j0", "j1", "j2", "j3", "j4"]
        assert [found.id for found in await all_of(client.jobs.list(limit=3))] == ["j0", "j1", "j2"]

    assert [request.page_token for request in canned.asked] == ["", "2", "4", "", "2"]


async def test_jobs_are_chosen_by_phase_and_name(serve: Serve) -> None:
    canned = Canned(jobs=[job("a"), job("b", JobPhase.FAILED), job("c", name="train")])

    async with Client(serve(canned)) as client:
        assert [found.id for found in await all_of(client.jobs.list(phases=[JobPhase.FAILED]))] == ["b"]
        assert [found.id for found in await all_of(client.jobs.list(name_contains="rai"))] == ["c"]


async def test_watching_tells_each_change_once_until_the_end(serve: Serve) -> None:
    preparing, running = job(phase=JobPhase.PREPARING), job()
    ended = job(phase=JobPhase.SUCCEEDED)
    canned = Canned(jobs=[preparing], watches=[[preparing, running, running, ended]])

    async with Client(serve(canned)) as client:
        assert await all_of(client.jobs.watch("ring")) == [preparing, running, ended]


async def test_watching_goes_on_after_a_broken_connection(serve: Serve) -> None:
    preparing, running, ended = job(phase=JobPhase.PREPARING), job(), job(phase=JobPhase.STOPPED)
    canned = Canned(jobs=[preparing], watches=[[preparing, running, Broken.UNAVAILABLE], [running, ended]])

    async with Client(serve(canned)) as client:
        assert await all_of(client.jobs.watch("j1")) == [preparing, running, ended]


async def test_waiting_gives_the_job_as_it_ended(serve: Serve) -> None:
    ended = job(phase=JobPhase.FAILED, summary="rank 2 on b: exit code 3")

    async with Client(serve(Canned(jobs=[job()], watches=[[job(), ended]]))) as client:
        assert await client.jobs.wait("ring") == ended


async def test_waiting_for_an_ended_job_returns_at_once(serve: Serve) -> None:
    canned = Canned(jobs=[job(phase=JobPhase.STOPPED)])

    async with Client(serve(canned)) as client:
        stopped = await client.jobs.wait("ring")
        assert await client.jobs.wait(stopped) == stopped

    assert stopped.phase is JobPhase.STOPPED
    assert canned.asked == [jobs_pb2.WatchRequest(job="ring", end_only=True)]


async def test_a_job_that_was_told_is_not_asked_for_again(serve: Serve) -> None:
    running, ended = job(), job(phase=JobPhase.SUCCEEDED)
    canned = Canned(jobs=[running], watches=[[running, ended]], logs=[[line(0, 1, "a")]])

    async with Client(serve(canned)) as client:
        assert await client.jobs.wait(running) == ended
        assert await all_of(client.jobs.logs(running)) == [line(0, 1, "a")]

    assert canned.asked_for(jobs_pb2.GetJobRequest) == []


async def test_a_followed_log_is_taken_up_again_without_loss_or_repetition(serve: Serve) -> None:
    before = [line(0, 1, "a"), line(1, 1, "b"), line(0, 2, "c"), line(0, 2, "d")]
    other_stream = replace(line(0, 1.5, "older, but read later"), stream="stderr")
    late = [line(2, 1, "from a slow node"), line(0, 2, "e"), other_stream, line(1, 3, "f")]
    canned = Canned(jobs=[job()], logs=[[*before, Broken.UNAVAILABLE], [*before, *late]])

    async with Client(serve(canned)) as client:
        assert await all_of(client.jobs.logs("ring", follow=True, tail=10)) == [*before, *late]

    first, again = canned.asked_for(jobs_pb2.LogsRequest)
    assert (first.tail, again.HasField("tail")) == (10, False)


async def test_what_to_show_of_a_log_is_asked_of_the_coordinator(serve: Serve) -> None:
    canned = Canned(jobs=[job()], logs=[[]])

    async with Client(serve(canned)) as client:
        await all_of(client.jobs.logs("ring", ranks={2, 0}, since=AT, tail=0, attempt=2))

    expected = jobs_pb2.LogsRequest(job="j1", ranks=[0, 2], tail=0, attempt=2)
    expected.since.FromDatetime(AT)
    assert canned.asked_for(jobs_pb2.LogsRequest) == [expected]


async def test_nodes_and_explanations_are_values(serve: Serve) -> None:
    why = Explanation(summary="2 GPUs are missing", phase=JobPhase.QUEUED, queue_position=1)
    canned = Canned(jobs=[job()], nodes=[node("a"), node("b"), node("c")], explanation=why, page=2)

    async with Client(serve(canned)) as client:
        assert [found.name for found in await client.nodes.list()] == ["a", "b", "c"]
        assert await client.nodes.get("b") == node("b")
        assert await client.jobs.why("ring") == why


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (grpc.StatusCode.INVALID_ARGUMENT, InvalidJobError),
        (grpc.StatusCode.NOT_FOUND, UnknownNameError),
        (grpc.StatusCode.FAILED_PRECONDITION, ConflictError),
        (grpc.StatusCode.UNAUTHENTICATED, PermissionDeniedError),
        (grpc.StatusCode.PERMISSION_DENIED, PermissionDeniedError),
    ],
)
async def test_what_the_coordinator_refuses_is_an_error_in_its_words(
    serve: Serve,
    status: grpc.StatusCode,
    error: type[MusterError],
) -> None:
    async with Client(serve(Canned(refusals=[(status, "no node has 9 GPUs")]))) as client:
        with pytest.raises(error) as raised:
            await client.jobs.submit(SPEC)

    assert str(raised.value) == "no node has 9 GPUs"


async def test_a_fault_of_the_coordinator_names_it(serve: Serve) -> None:
    address = serve(Canned(refusals=[(grpc.StatusCode.INTERNAL, "disk I/O error")]))

    async with Client(address) as client:
        with pytest.raises(MusterError) as raised:
            await client.jobs.get("j1")

    assert str(raised.value) == f"the coordinator at {address} failed (INTERNAL): disk I/O error"


async def test_a_coordinator_that_is_not_there_is_an_error_that_says_what_to_do() -> None:
    async with Client("127.0.0.1:1") as client:
        with pytest.raises(UnavailableError) as raised:
            await client.jobs.get("j1")

    assert str(raised.value) == (
        "no coordinator answers at 127.0.0.1:1; is it running? "
        "(`muster up` starts one here; MUSTER_COORDINATOR or --coordinator names another)"
    )


async def test_a_coordinator_that_hangs_is_an_error_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as accepts_but_never_answers:
        host, port = accepts_but_never_answers.getsockname()
        async with Client(f"{host}:{port}", timeout=0.2) as client:
            with pytest.raises(UnavailableError, match="did not answer in time"):
                await client.jobs.get("j1")


async def test_plain_text_beyond_this_machine_is_refused() -> None:
    with pytest.raises(PermissionDeniedError, match=r"unencrypted to 10\.0\.0\.1:7460"):
        async with Client("10.0.0.1:7460"):
            pass


async def test_the_figures_of_the_coordinator_are_as_it_says(serve: Serve) -> None:
    figures = CoordinatorFigures(began=AT, turns=7, waiting=2, streams=3, memory=2**26, cpu_seconds=1.5)

    async with Client(serve(Canned(figures=figures))) as client:
        assert await client.fleet.figures() == figures
