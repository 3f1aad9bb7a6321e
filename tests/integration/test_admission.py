"""Callers who begin calls and do not go on with them, or hold very many: memory stays, and nobody else notices."""

import asyncio
import gzip
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from coordinator.rpc.admission.interceptor import STRANGERS_MESSAGE
from coordinator.rpc.journal_pace import LINES_AT_ONCE, LINES_OF_ONE_AT_ONCE
from coordinator.rpc.limits import ACCOUNT_STREAMS, ACCOUNT_UNDER_WAY, CLIENT_MESSAGE, STRANGER_UNDER_WAY
from coordinator.trust.audit.log import REFUSALS
from muster.client.client import Client
from muster.domain.fleet.access import EVERYWHERE, Access, AccountKind
from muster.rpc.channel import STREAMS, Credentials, open_channel
from muster.rpc.v1 import jobs_pb2, trust_pb2, trust_pb2_grpc
from tests.integration.jobs import shell
from tests.integration.journal import Journal
from tests.integration.programs import Open, open_coordinator
from tests.integration.raw_http2 import Connection, connection, framed
from tests.integration.secured import secured
from tests.integration.strangers import refusal

Code = grpc.StatusCode
AUTHORITY = "/muster.rpc.v1.JoinService/Authority"
GET = "/muster.rpc.v1.JobService/Get"
SUBMIT = "/muster.rpc.v1.JobService/Submit"
WATCH = "/muster.rpc.v1.JobService/Watch"
WHO_AM_I = "/muster.rpc.v1.TrustService/WhoAmI"
REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
CONNECTIONS = 10
ENDED_WITHIN = 60.0
"""Seconds for what takes a few."""


@asynccontextmanager
async def connections(coordinator: Open, count: int) -> AsyncIterator[list[Connection]]:
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(connection(coordinator.clients, coordinator.authority))
            for _ in range(count)
        ]


async def asks(coordinator: Open, source: str) -> bool:
    """Whether a stranger at that address is answered."""
    async with connection(coordinator.clients, coordinator.authority, source) as other:
        number = await other.begin(AUTHORITY)
        await other.send(number, framed(b""))
        return await other.all_ended(ENDED_WITHIN)


async def memory_within(coordinator: Open, most: int) -> int:
    """MiB in memory, as soon as it is not more than that, or after some time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(ENDED_WITHIN):
            while coordinator.memory() > most:  # noqa: ASYNC110 - nobody tells when
                await asyncio.sleep(0.1)
    return coordinator.memory()


async def viewer(admin: Client) -> tuple[str, str]:
    """A new account that may look at everything: its token, and the id of that."""
    await admin.accounts.add("vera", AccountKind.USER, {EVERYWHERE: Access.VIEWER})
    secret, token = await admin.tokens.create("vera")
    return secret, token.id


@pytest.mark.parametrize("path", [AUTHORITY, SUBMIT])
async def test_a_stranger_with_open_calls_locks_nobody_out(tmp_path: Path, path: str) -> None:
    async with open_coordinator(tmp_path) as coordinator, coordinator.client() as admin:
        assert await admin.nodes.list() == ()
        before = coordinator.memory()
        async with connections(coordinator, CONNECTIONS) as strangers:
            for stranger in strangers:
                for _ in range(STREAMS):
                    await stranger.begin(path)
            assert await admin.nodes.list() == ()
            assert await asks(coordinator, "127.0.0.2")
            for stranger in strangers:
                assert await stranger.all_ended(ENDED_WITHIN)
        assert await memory_within(coordinator, before + 60) <= before + 60
        refused = [entry.result for entry in await admin.audit.list()]
        assert set(refused) & {"too fast", "no token"}
        assert len(refused) < 60
        assert "Traceback" not in coordinator.log.read_text()


async def test_an_account_with_thousands_of_streams_locks_nobody_out_and_ends_with_its_token(tmp_path: Path) -> None:
    async with open_coordinator(tmp_path) as coordinator, coordinator.client() as admin:
        token, id_ = await viewer(admin)
        job = await admin.jobs.submit(shell("true"), queue_anyway=True)
        asked = framed(jobs_pb2.WatchRequest(job=job.id).SerializeToString())
        async with connections(coordinator, CONNECTIONS) as many, coordinator.client(token) as vera:
            for each in many:
                for _ in range(STREAMS):
                    await each.send(await each.begin(WATCH, token), asked)
            assert (await admin.jobs.get(job.id)).id == job.id
            assert (await vera.jobs.get(job.id)).id == job.id
            await until_open(many, ACCOUNT_STREAMS)
            await admin.tokens.revoke(id_)
            for each in many:
                assert await each.all_ended(ENDED_WITHIN)
        refused = [entry.result for entry in await admin.audit.list() if entry.what == "jobs.watch"]
        assert "too fast" in refused
        assert len(refused) <= 2 * REFUSALS


async def until_open(many: list[Connection], count: int) -> None:
    """Wait until so many calls are open, no more and no less."""
    async with asyncio.timeout(ENDED_WITHIN):
        while sum(each.open for each in many) != count:  # noqa: ASYNC110 - nobody tells when
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("known", [False, True])
async def test_messages_that_never_end_hold_little_memory_and_give_it_back(tmp_path: Path, known: bool) -> None:
    most = ACCOUNT_UNDER_WAY if known else STRANGER_UNDER_WAY
    async with open_coordinator(tmp_path) as coordinator, coordinator.client() as admin:
        token, _ = await viewer(admin) if known else ("", "")
        before = coordinator.memory()
        highest = before
        async with connections(coordinator, 6) as many:
            for each in many:
                for _ in range(10):
                    number = await each.begin(GET if known else AUTHORITY, token)
                    unended = framed(bytes(CLIENT_MESSAGE - 1000), CLIENT_MESSAGE)
                    taken = await each.send(number, unended, patience=0.05)
                    assert taken <= len(unended)
                    highest = max(highest, coordinator.memory())
            assert await admin.nodes.list() == ()
            assert highest - before < (most >> 20) + 24
            if not known:
                for each in many:
                    assert await each.all_ended(ENDED_WITHIN)
        assert await memory_within(coordinator, before + 24) <= before + 24


@pytest.mark.parametrize("path", [AUTHORITY, REFLECTION])
async def test_a_message_that_says_it_is_huge_is_refused_before_it_comes(tmp_path: Path, path: str) -> None:
    """gRPC refuses it from 1.84 on; before, it took in all that came."""
    async with open_coordinator(tmp_path) as coordinator, connections(coordinator, 1) as (stranger,):
        number = await stranger.begin(path)
        assert await stranger.send(number, framed(bytes(64 << 20), 1 << 30)) < 2 << 20
        assert await stranger.all_ended(ENDED_WITHIN)


async def test_a_compressed_message_is_not_unfolded(tmp_path: Path) -> None:
    bomb = gzip.compress(bytes(100 << 20))
    async with open_coordinator(tmp_path) as coordinator:
        before = coordinator.memory()
        shown = Credentials(authority=coordinator.authority)
        async with connections(coordinator, 1) as (stranger,), open_channel(coordinator.clients, shown) as channel:
            for _ in range(4):
                number = await stranger.begin(AUTHORITY, grpc_encoding="gzip")
                await stranger.send(number, framed(bomb, compressed=True))
            assert await stranger.all_ended(ENDED_WITHIN)
            assert coordinator.memory() - before < 16
            stub: Any = trust_pb2_grpc.JoinServiceStub(channel)
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await stub.Authority(trust_pb2.AuthorityRequest(), compression=grpc.Compression.Gzip)
            assert refused.value.code() is Code.UNIMPLEMENTED
            assert refused.value.details() == "Compression algorithm 'gzip' is disabled."


async def test_a_stream_of_a_stranger_ends_unless_its_messages_come_soon(tmp_path: Path) -> None:
    async with open_coordinator(tmp_path) as coordinator, connections(coordinator, 1) as (stranger,):
        await stranger.begin(REFLECTION)
        assert await stranger.all_ended(ENDED_WITHIN)


async def test_a_message_that_comes_after_its_token_was_revoked_is_not_acted_upon(tmp_path: Path) -> None:
    async with open_coordinator(tmp_path) as coordinator, coordinator.client() as admin:
        token, id_ = await viewer(admin)
        async with connections(coordinator, 1) as (other,):
            late = await other.begin(WHO_AM_I, token)
            # What a stranger begins is ended after some seconds; so those have passed.
            stranger = await other.begin(REFLECTION)
            await other.end_of(stranger)
            await admin.tokens.revoke(id_)
            await other.send(late, framed(b""))
            await other.end_of(late)
        refused = [entry.result for entry in await admin.audit.list() if entry.what == "accounts.whoami"]
        assert refused == [f"revoked token {id_} vera"]


RUBBISH = b"\xff\xff\xff rubbish"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/muster.rpc.v1.JobService/Get", "GetJobRequest"),
        ("/muster.rpc.v1.JobService/Watch", "WatchRequest"),
        ("/muster.rpc.v1.BundleService/Put", "PutBundlePiece"),
        (AUTHORITY, "AuthorityRequest"),
    ],
)
async def test_bytes_that_are_no_message_are_refused_in_a_sentence_and_logged_in_one_line(
    tmp_path: Path, path: str, kind: str
) -> None:
    journal = Journal()
    journal.start()
    try:
        async with secured(tmp_path) as fleet:
            shown = Credentials(authority=fleet.authority.certificate, token=fleet.admin_token)
            async with open_channel(fleet.doors.clients, shown) as channel:
                call: Any = channel.stream_stream(path)(metadata=shown.metadata)
                await call.write(RUBBISH)
                assert await refusal(call) == (
                    Code.INVALID_ARGUMENT,
                    f"{kind} cannot be read: these bytes are no such message",
                )
        assert len(journal.said("malformed message", call=path)) == 1
        assert [record.getMessage() for record in journal.records if record.exc_info] == []
        assert journal.errors() == []
    finally:
        journal.stop()


async def test_malformed_messages_from_many_addresses_make_few_lines_and_their_number_is_told(tmp_path: Path) -> None:
    async with open_coordinator(tmp_path) as coordinator:
        for number in range(CONNECTIONS):
            source = f"127.0.0.{2 + number}"
            async with connection(coordinator.clients, coordinator.authority, source) as stranger:
                for _ in range(3 * LINES_OF_ONE_AT_ONCE):
                    await stranger.send(await stranger.begin(AUTHORITY), framed(RUBBISH))
                assert await stranger.all_ended(ENDED_WITHIN)
    log = coordinator.log.read_text()
    lines = log.count("warning malformed message peer=")
    assert LINES_AT_ONCE <= lines < 1.5 * LINES_AT_ONCE
    left_out = re.findall(r'like this were left out like="malformed message" lines=(\d+) addresses=(\d+)', log)
    assert sum(int(each) for each, _ in left_out) == 3 * LINES_OF_ONE_AT_ONCE * CONNECTIONS - lines
    assert {addresses for _, addresses in left_out} <= {str(count) for count in range(1, CONNECTIONS + 1)}


async def test_a_call_without_its_message_and_a_long_one_of_a_stranger_are_refused(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet:
        shown = Credentials(authority=fleet.authority.certificate, token=fleet.admin_token)
        async with open_channel(fleet.doors.clients, shown) as channel:
            call: Any = channel.stream_stream(GET)(metadata=shown.metadata)
            await call.done_writing()
            assert await refusal(call) == (Code.INVALID_ARGUMENT, "the call ended without its message")
            stub: Any = trust_pb2_grpc.JoinServiceStub(channel)
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await stub.Join(trust_pb2.JoinRequest(node="a", request=bytes(STRANGERS_MESSAGE)))
            assert refused.value.code() is Code.RESOURCE_EXHAUSTED
            assert refused.value.details() == "before a login a message has 16384 bytes at most"
