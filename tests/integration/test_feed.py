"""The feed from a real coordinator: with the rights of whoever reads, over restarts, to readers that do not read."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from muster.client.client import Client
from muster.domain.errors import NotSignedInError, PermissionDeniedError
from muster.domain.feed import FeedBatch, FeedPart
from muster.domain.fleet.access import EVERYWHERE, Access
from muster.domain.jobs.job import InlineFile
from muster.rpc.channel import open_channel
from muster.rpc.v1 import feed_pb2
from muster.rpc.v1.feed_pb2_grpc import FeedServiceStub
from muster.trust.tokens import parse_api_token
from tests.integration.fleet import SHOWN, running_fleet
from tests.integration.jobs import shell
from tests.integration.secured import secured

READERS = {
    "viewer": {"vision": Access.VIEWER},
    "member": {"vision": Access.MEMBER},
    "viewer of both": {"vision": Access.VIEWER, "speech": Access.VIEWER},
    "fleet viewer": {EVERYWHERE: Access.VIEWER},
    "fleet admin": {EVERYWHERE: Access.ADMIN},
}


async def caught_up(batches: AsyncGenerator[FeedBatch, None]) -> list[FeedBatch]:
    """What is told until nothing more is known."""
    told = []
    async for batch in batches:
        told.append(batch)
        if batch.caught_up:
            return told
    raise AssertionError("the feed has ended")


async def everything(batches: AsyncGenerator[FeedBatch, None]) -> list[FeedBatch]:
    """All that is told until the feed ends."""
    return [batch async for batch in batches]


async def first_told(client: Client) -> list[FeedBatch]:
    """All that somebody is told at first."""
    async with aclosing(client.fleet.feed(list(FeedPart))) as batches:
        return await caught_up(batches)


@pytest.mark.parametrize("name", READERS)
async def test_a_reader_is_told_of_what_its_lists_have_and_of_nothing_else(tmp_path: Path, name: str) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        token = await fleet.user("reader", READERS[name])
        for project in {"vision", "speech"} - READERS[name].keys():
            await admin.projects.add(project)
        for project in ("vision", "speech"):
            await admin.jobs.submit(shell("true", project=project, hold=True), queue_anyway=True)
        async with fleet.client(token) as reader:
            told = await first_told(reader)
            jobs = [job async for job in reader.jobs.list()]
            projects = await reader.projects.list()
            queue = (await reader.projects.queue()).lines
        assert {job.id: job for batch in told for job in batch.jobs} == {job.id: job for job in jobs}
        assert {each.name: each for batch in told for each in batch.projects} == {each.name: each for each in projects}
        assert told[-1].queue == queue


async def test_who_may_look_at_nothing_is_refused(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client(await fleet.user("nobody", {})) as nobody:
        with pytest.raises(PermissionDeniedError):
            await first_told(nobody)


@pytest.mark.parametrize("parts", [list(FeedPart), []])
async def test_a_reader_whose_rights_change_is_cut_off_at_once(tmp_path: Path, parts: list[FeedPart]) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin, asyncio.timeout(30):
        token = await fleet.user("reader", {"vision": Access.VIEWER})
        async with fleet.client(token) as reader, aclosing(reader.fleet.feed(parts)) as batches:
            await caught_up(batches)
            await admin.tokens.revoke(parse_api_token(token).id)
            with pytest.raises(NotSignedInError):
                await everything(batches)


async def test_a_reader_goes_on_over_a_restart_of_the_coordinator(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet, asyncio.timeout(60):
        first = await fleet.client.jobs.submit(shell("true", hold=True), queue_anyway=True)
        async with aclosing(fleet.client.fleet.feed([FeedPart.JOBS])) as batches:
            assert [job.id for batch in await caught_up(batches) for job in batch.jobs] == [first.id]
            await fleet.restart_coordinator()
            again = await caught_up(batches)
            assert again[0].anew
            assert [job.id for batch in again for job in batch.jobs] == [first.id]
            second = await fleet.client.jobs.submit(shell("true", hold=True), queue_anyway=True)
            assert [job.id for batch in await caught_up(batches) for job in batch.jobs] == [second.id]


async def test_a_reader_that_does_not_read_is_cut_off_with_the_reason_and_others_read_on(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet, asyncio.timeout(60):
        await fleet.stop_coordinator()
        fleet.reader_patience = 0.2
        await fleet.start_coordinator()
        large = shell("true", files=(InlineFile(path="x", content=b"x" * 100_000),), hold=True)
        await fleet.client.jobs.submit_many([large] * 300, queue_anyway=True)
        async with open_channel(fleet.address) as channel:
            call: Any = FeedServiceStub(channel).Follow(
                feed_pb2.FollowFeedRequest(parts=["jobs"]), metadata=SHOWN.metadata
            )
            await call.read()
            await fleet.journal.heard("a reader that does not read is cut off")
            assert len([job for batch in await first_told(fleet.client) for job in batch.jobs]) == 300
            with suppress(grpc.aio.AioRpcError):
                while await call.read() is not grpc.aio.EOF:
                    pass
            assert await call.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert await call.details() == "nothing was read for 0.2 s, so the coordinator stopped sending"
