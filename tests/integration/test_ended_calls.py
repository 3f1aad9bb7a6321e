"""Calls that have ended leave nothing that refers to itself: among old objects Python hardly ever looks for that."""

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import pytest

from coordinator.engine.agent_streams import AgentStream
from coordinator.rpc.admission.open_calls import CallSeat
from coordinator.rpc.agents.attachments import AgentAttachments
from coordinator.rpc.agents.code_delivery import CodeDelivery
from coordinator.rpc.agents.data_delivery import DataDelivery
from coordinator.rpc.agents.log_intake import LogIntake
from coordinator.rpc.agents.renewals import Renewals
from coordinator.rpc.agents.secret_delivery import SecretDelivery
from coordinator.rpc.agents.service import AgentService, GivenToNodes, TakenFromNodes
from coordinator.rpc.callers import CALLER
from coordinator.rpc.services import Parts
from coordinator.service.attaching.attachments import AttachmentOperations, AttachWays
from coordinator.service.attaching.lines import AgentLines
from coordinator.service.attaching.open_book import AttachmentBook
from coordinator.service.attaching.rights import AttachRights
from coordinator.service.data.swarms import Swarms
from coordinator.trust.caller import LOCAL
from muster.domain.errors import MusterError
from muster.domain.fleet.access import OPEN
from muster.rpc.channel import Credentials, open_channel
from muster.rpc.v1 import agents_pb2, agents_pb2_grpc, jobs_pb2, jobs_pb2_grpc
from tests.integration.jobs import shell
from tests.integration.journal import Journal
from tests.integration.parts import working_parts
from tests.integration.raw_http2 import connection, framed
from tests.integration.secured import joined, secured
from tests.integration.strangers import hello, refusal

AUTHORITY = "/muster.rpc.v1.JoinService/Authority"
SUBMIT = "/muster.rpc.v1.JobService/Submit"
CALLS = 10
ENDED_WITHIN = 60.0


@pytest.fixture
def circles() -> Iterator[list[object]]:
    """What Python finds that refers to itself, from here on."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    yield gc.garbage
    gc.set_debug(0)
    gc.garbage.clear()
    gc.enable()


def of_ours(circles: list[object]) -> list[str]:
    """What a call or a stream of the coordinator's had, if it is only found there."""
    gc.collect()
    return sorted({type(each).__name__ for each in circles if isinstance(each, CallSeat | AgentStream | MusterError)})


@pytest.mark.parametrize("path", [AUTHORITY, SUBMIT])
@pytest.mark.parametrize("message", [b"", framed(b"\xff")], ids=["no message", "malformed"])
async def test_a_refused_call_leaves_no_circle(
    tmp_path: Path, circles: list[object], path: str, message: bytes
) -> None:
    async with secured(tmp_path) as fleet:
        async with connection(fleet.doors.clients, fleet.authority.certificate) as stranger:
            for _ in range(CALLS):
                await stranger.send(await stranger.begin(path), message)
            assert await stranger.all_ended(ENDED_WITHIN)
        assert of_ours(circles) == []


async def test_a_reader_who_hangs_up_leaves_no_circle(tmp_path: Path, circles: list[object]) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        job = await admin.jobs.submit(shell("true"), queue_anyway=True)
        shown = Credentials(authority=fleet.authority.certificate, token=fleet.admin_token)
        async with open_channel(fleet.doors.clients, shown) as channel:
            for _ in range(CALLS):
                call = jobs_pb2_grpc.JobServiceStub(channel).Watch(
                    jobs_pb2.WatchRequest(job=job.id), metadata=shown.metadata
                )
                await call.read()
                call.cancel()
    assert of_ours(circles) == []


async def test_a_stream_that_is_refused_leaves_no_circle(tmp_path: Path, circles: list[object]) -> None:
    async with secured(tmp_path) as fleet:
        shown = await joined(fleet, "a")
        async with open_channel(fleet.doors.agents, shown) as channel:
            for _ in range(CALLS):
                call = agents_pb2_grpc.AgentServiceStub(channel).Connect()
                await call.write(hello("b"))
                assert (await refusal(call))[0] is grpc.StatusCode.PERMISSION_DENIED
        assert of_ours(circles) == []


async def test_a_node_that_comes_again_and_again_leaves_no_circle(tmp_path: Path, circles: list[object]) -> None:
    journal = Journal()
    journal.start()
    try:
        async with secured(tmp_path) as fleet:
            shown = await joined(fleet, "a")
            for turn in range(CALLS):
                async with open_channel(fleet.doors.agents, shown) as channel:
                    call = agents_pb2_grpc.AgentServiceStub(channel).Connect()
                    await call.write(hello("a"))
                    await call.read()
                    call.cancel()
                await journal.heard("node disconnected", turn + 1)
        assert of_ours(circles) == []
    finally:
        journal.stop()


class Hearer:
    """The context of a call whose caller hears so many messages, and hangs up before the next one."""

    def __init__(self, hears: int) -> None:
        self.heard = asyncio.Event()
        self._left = hears

    async def write(self, _message: object) -> None:
        if not self._left:
            raise grpc.aio.InternalError("the caller is gone")
        self._left -= 1
        self.heard.set()

    def peer(self) -> str:
        return "a test"


def agents_of(parts: Parts) -> AgentService:
    """The service for agents."""
    nodes = parts.registry.joined
    given = GivenToNodes(
        secrets=SecretDelivery(parts.engine, parts.secrets, parts.audit),
        data=DataDelivery(parts.engine, None, parts.secrets, parts.audit),
        code=CodeDelivery(parts.engine, None, parts.audit),
        swarms=Swarms(parts.engine),
    )
    rights = AttachRights(permissions_of=lambda _: OPEN, holder_of=parts.registry.holder_of)
    lines = AgentLines()
    ways = AttachWays(relay=None, lines=lines)
    operations = AttachmentOperations(parts.operations, parts.engine, parts.audit, rights, AttachmentBook(), ways)
    attachments = AgentAttachments(lines, operations)
    taken = TakenFromNodes(
        logs=LogIntake(parts.engine, parts.logs, parts.log_quota), samples=parts.samples, kept=parts.kept
    )
    return AgentService(parts.engine, taken, nodes, Renewals(nodes, None), given, attachments)


async def test_a_node_whose_stream_is_cancelled_leaves_no_circle(tmp_path: Path, circles: list[object]) -> None:
    CALLER.set(LOCAL)
    async with working_parts(tmp_path) as parts:
        agents = agents_of(parts)
        for _ in range(CALLS):
            hearer: Any = Hearer(100)  # gRPC has no class to make one of
            stream = asyncio.create_task(agents.Connect(_says_hello("a"), hearer))
            async with asyncio.timeout(ENDED_WITHIN):
                await hearer.heard.wait()
            stream.cancel()
            with suppress(asyncio.CancelledError):
                await stream
        del stream
        assert of_ours(circles) == []


@pytest.mark.parametrize("hears", [pytest.param(0, id="nothing"), pytest.param(1, id="a welcome, but no plan")])
async def test_a_node_that_hangs_up_before_it_hears_leaves_no_circle(
    tmp_path: Path, circles: list[object], hears: int
) -> None:
    CALLER.set(LOCAL)
    async with working_parts(tmp_path) as parts:
        agents = agents_of(parts)
        for _ in range(CALLS):
            hearer: Any = Hearer(hears)
            async with asyncio.timeout(ENDED_WITHIN):
                with suppress(grpc.aio.InternalError):
                    await agents.Connect(_says_hello("a"), hearer)
        assert of_ours(circles) == []


async def _says_hello(node: str) -> AsyncIterator[agents_pb2.AgentMessage]:
    yield hello(node)
    await asyncio.Event().wait()
