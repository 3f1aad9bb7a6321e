"""Callers that call too often, or bring too much, are told so at the door; known ones go on."""

import asyncio
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from agent.identity.enrolment import join
from coordinator.rpc.limits import METADATA, STREAMS_OF_ONE_STRANGER
from coordinator.rpc.pace import Pace, Rates
from coordinator.trust.audit.log import REFUSALS
from muster.client.client import Client
from muster.daemon.rates import Rate
from muster.domain.errors import ConflictError, ExhaustedError, InvalidJobError, PermissionDeniedError, UnknownNameError
from muster.domain.fleet.access import EVERYWHERE, Access
from muster.domain.ids import NodeId
from muster.rpc.channel import Credentials, open_channel
from muster.rpc.v1 import nodes_pb2, nodes_pb2_grpc, trust_pb2, trust_pb2_grpc
from muster.trust.certificates import new_key
from muster.trust.tokens import new_api_token, new_join_token, parse_join_token
from tests.integration.fleet import SHOWN, running_fleet
from tests.integration.jobs import shell
from tests.integration.secured import Secured, secured
from tests.integration.strangers import hello, stranger

EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED


def slow(**rates: Rate) -> Pace:
    """Time stands still, so what is taken does not come back."""
    return Pace(Rates(**rates), lambda: 0.0)


def anybody(fleet: Secured) -> grpc.aio.Channel:
    """A connection to the clients' door."""
    return open_channel(fleet.doors.clients, Credentials(authority=fleet.authority.certificate))


async def ended(call: Any) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await call
    return error.value


async def test_wrong_tokens_are_held_up_with_a_hint_and_the_right_one_from_the_same_address_is_not(
    tmp_path: Path,
) -> None:
    pace = slow(wrong=Rate(burst=3, per_second=0.5))
    async with secured(tmp_path, pace=pace) as fleet, anybody(fleet) as channel, fleet.client() as admin:
        stub: Any = nodes_pb2_grpc.NodeServiceStub(channel)
        wrong = (("authorization", f"Bearer {new_api_token()}"),)
        errors = [await ended(stub.List(nodes_pb2.ListNodesRequest(), metadata=wrong)) for _ in range(REFUSALS * 3)]
        assert [error.code().name for error in errors] == ["UNAUTHENTICATED"] * 3 + ["RESOURCE_EXHAUSTED"] * 57
        assert errors[-1].details() == "too much that does not count was shown from this address; try again in 2 s"
        assert ("retry-after", "2") in tuple(errors[-1].trailing_metadata())
        assert await admin.nodes.list() == ()
        noted = [entry.result for entry in await admin.audit.list() if entry.what == "nodes.list"]
        assert noted == ["wrong token"] * 3 + ["too fast"] * (REFUSALS - 3)


async def test_wrong_join_tokens_are_held_up_and_the_right_one_from_the_same_address_is_not(tmp_path: Path) -> None:
    async with secured(tmp_path, pace=slow(wrong=Rate(burst=1, per_second=1))) as fleet:
        wrong, right = new_join_token(fleet.authority.fingerprint), parse_join_token(await fleet.join_token())
        with pytest.raises(PermissionDeniedError):
            await join(fleet.doors.clients, wrong, NodeId("a"), new_key())
        with pytest.raises(ExhaustedError, match="try again in 1 s"):
            await join(fleet.doors.clients, wrong, NodeId("a"), new_key())
        assert (await join(fleet.doors.clients, right, NodeId("a"), new_key())).agents == fleet.doors.agents


async def test_what_anybody_may_call_is_not_called_without_end(tmp_path: Path) -> None:
    pace = slow(strangers=Rate(burst=2, per_second=1))
    async with secured(tmp_path, pace=pace) as fleet, anybody(fleet) as channel, fleet.client() as admin:
        stub: Any = trust_pb2_grpc.JoinServiceStub(channel)
        for _ in range(2):
            await stub.Authority(trust_pb2.AuthorityRequest())
        assert (await ended(stub.Authority(trust_pb2.AuthorityRequest()))).code() is EXHAUSTED
        assert (await admin.accounts.myself()).name == "admin"


async def test_streams_that_anybody_may_open_are_few(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, anybody(fleet) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        watches = [stub.Watch(health_pb2.HealthCheckRequest()) for _ in range(STREAMS_OF_ONE_STRANGER)]
        for watch in watches:
            assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
        assert (await ended(stub.Watch(health_pb2.HealthCheckRequest()).read())).code() is EXHAUSTED
        for watch in watches:
            watch.cancel()


async def test_an_account_that_calls_too_often_is_held_up_and_others_are_not(tmp_path: Path) -> None:
    async with secured(tmp_path, pace=slow(accounts=Rate(burst=20, per_second=1))) as fleet:
        token = await fleet.user("ada", {EVERYWHERE: Access.VIEWER})
        async with (
            Client(fleet.doors.clients, Credentials(authority=fleet.authority.certificate, token=token)) as ada,
            fleet.client() as admin,
        ):
            for _ in range(20):
                await ada.nodes.list()
            with pytest.raises(ExhaustedError, match="ada makes too many calls; try again in 1 s"):
                await ada.nodes.list()
            assert await admin.nodes.list() == ()


async def test_a_message_that_no_client_has_use_for_is_not_taken_in(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        with pytest.raises(InvalidJobError, match=r"the job is 5\.2 MiB large; 4 MiB are the most"):
            await admin.jobs.submit(shell("true", env={f"V{number}": "x" * 100_000 for number in range(55)}))
        with pytest.raises(ExhaustedError, match="larger than max"):
            await admin.jobs.submit(shell("true", env={f"V{number}": "x" * 100_000 for number in range(75)}))


async def test_what_goes_beside_a_message_is_small(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, anybody(fleet) as channel:
        stub: Any = trust_pb2_grpc.JoinServiceStub(channel)
        large = (("authorization", "x" * 3 * METADATA),)
        error = await ended(stub.Authority(trust_pb2.AuthorityRequest(), metadata=large))
        assert error.code() is EXHAUSTED
        await stub.Authority(trust_pb2.AuthorityRequest(), metadata=(("authorization", "x" * 1000),))


async def test_a_refusal_for_a_large_fleet_arrives_and_says_how_much_it_leaves_out(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet, stranger(fleet) as stub:
        calls = [stub.Connect(metadata=SHOWN.metadata) for _ in range(300)]
        for number, call in enumerate(calls):
            await call.write(hello(f"node-{number:03}"))
        await asyncio.gather(*(call.read() for call in calls))
        with pytest.raises(ConflictError) as refused:
            await fleet.client.jobs.submit(shell("true"))
        lines = str(refused.value).splitlines()
        listed = [line for line in lines if line.startswith("  node-")]
        assert lines[-1] == f"  and {300 - len(listed)} nodes more"
        assert 50 < len(listed) < 300


async def test_an_error_about_a_very_long_word_arrives(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        with pytest.raises(UnknownNameError, match=r"ää…$"):
            await admin.jobs.get("ä" * 100_000)
