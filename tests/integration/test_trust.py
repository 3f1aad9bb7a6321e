"""Which nodes are let in, and which are not: join tokens and certificates."""

import asyncio
import stat
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from agent.identity.enrolment import join
from coordinator.clock import wall_time
from muster.client.client import Client
from muster.domain.errors import ConflictError, MusterError, PermissionDeniedError
from muster.domain.ids import NodeId
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.view import LogLine
from muster.rpc.channel import Credentials, open_channel
from muster.rpc.v1 import agents_pb2 as pb
from muster.rpc.v1 import agents_pb2_grpc
from muster.trust.certificates import facts, issue_node, make_authority, new_key, request_certificate
from muster.trust.identity import CertificateError
from muster.trust.tokens import new_join_token, parse_join_token
from tests.integration.jobs import shell
from tests.integration.secured import Secured, connect, joined, joining, secured, until_ready
from tests.integration.strangers import hello

A = NodeId("a")
Code = grpc.StatusCode


async def refusal_to_join(fleet: Secured, token: str, node: str = "a") -> str:
    with pytest.raises(MusterError) as refused:
        await join(fleet.doors.clients, parse_join_token(token), NodeId(node), new_key())
    return str(refused.value)


async def test_a_node_joins_works_renews_and_is_sent_away(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as client:
        token = await fleet.join_token(labels={"pool": "red"})
        async with joining(fleet, "a", token, "--label", "pool=blue", "--label", "rack=7"):
            await until_ready(client, "a")
            (node,) = await client.nodes.list()
            assert node.inventory.labels == {"pool": "red", "local/pool": "blue", "local/rack": "7"}
            job = await client.jobs.submit(shell("echo $MUSTER_JOIN_TOKEN.; exec sleep 60"))
            assert [line.text async for line in _first(client, job.id)] == [b"."]

            await client.nodes.revoke("a")
            async with asyncio.timeout(20):
                while (await client.nodes.get("a")).state.value == "ready":  # noqa: ASYNC110 - nobody tells when
                    await asyncio.sleep(0.1)
                while not ({"was sent away", "counts no more"} & _said(tmp_path / "a.log")):  # noqa: ASYNC110 - nor here
                    await asyncio.sleep(0.1)
        assert stat.S_IMODE((tmp_path / "a" / "trust" / "key.pem").stat().st_mode) == 0o600
        assert stat.S_IMODE((tmp_path / "a" / "trust" / "node.json").stat().st_mode) == 0o600


def _said(journal: Path) -> set[str]:
    """What of interest is in a journal."""
    text = journal.read_text()
    return {words for words in ("was sent away", "counts no more") if words in text}


async def _first(client: Client, job: str) -> AsyncIterator[LogLine]:
    async for line in client.jobs.logs(job, follow=True):
        yield line
        return


async def test_a_renewed_certificate_is_shown_on_a_new_stream_while_work_goes_on(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as client:
        fleet.authority.node_life = timedelta(seconds=6)
        token = await fleet.join_token()
        async with joining(fleet, "a", token):
            await until_ready(client, "a")
            job = await client.jobs.submit(shell("for i in $(seq 60); do echo $i; sleep 0.2; done"))
            assert (await client.jobs.wait(job.id)).phase is JobPhase.SUCCEEDED
            lines = [int(line.text) async for line in client.jobs.logs(job.id)]
        assert lines == list(range(1, 61))
        log = (tmp_path / "a.log").read_text()
        assert log.count("certificate renewed") >= 1
        assert log.count("connected to the coordinator") >= 2
        assert "Traceback" not in log


async def test_a_token_lets_as_many_nodes_in_as_it_says(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet:
        token = await fleet.join_token(uses=2)
        outcomes = await asyncio.gather(
            *(join(fleet.doors.clients, parse_join_token(token), NodeId(f"n{n}"), new_key()) for n in range(5)),
            return_exceptions=True,
        )
        assert sum(not isinstance(outcome, BaseException) for outcome in outcomes) == 2
        assert "not known, used up, expired or revoked" in await refusal_to_join(fleet, token)
        async with fleet.client() as client:
            assert [each.uses_left for each in await client.join_tokens.list()] == [0]
            refused = [e for e in await client.audit.list() if e.what == "nodes.join" and not e.result.startswith("ok")]
            assert {entry.result.partition(" ")[0] for entry in refused} == {"join"}
            assert len(refused) == 4


async def test_who_asks_again_because_the_answer_got_lost_joins_once(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet:
        token, key = parse_join_token(await fleet.join_token()), new_key()
        first = await join(fleet.doors.clients, token, A, key)
        second = await join(fleet.doors.clients, token, A, key)
        assert first.agents == second.agents == fleet.doors.agents


async def test_wrong_expired_and_revoked_join_tokens_are_refused_alike(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as client:
        wrong = str(new_join_token(fleet.authority.fingerprint))
        short = await fleet.join_token(ttl=timedelta(milliseconds=1))
        revoked = await fleet.join_token()
        await client.join_tokens.revoke(parse_join_token(revoked).id)
        known = parse_join_token(await fleet.join_token())
        forged = str(new_join_token(known.authority)).replace(new_join_token(known.authority).id, known.id)
        said = {await refusal_to_join(fleet, token) for token in (wrong, short, revoked, forged)}
        assert len(said) == 1


async def test_a_name_that_another_node_has_is_refused_until_that_one_is_sent_away(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as client:
        old = await joined(fleet, "a")
        token = parse_join_token(await fleet.join_token(uses=3))
        with pytest.raises(ConflictError, match="there is a node a with another key"):
            await join(fleet.doors.clients, token, A, new_key())
        await client.nodes.revoke("a")
        assert (await connect(fleet.doors.agents, old, "a"))[0] is Code.UNAUTHENTICATED
        await join(fleet.doors.clients, token, A, new_key())
        status, said = await connect(fleet.doors.agents, old, "a")
        assert (status, said) == (Code.UNAUTHENTICATED, "node a has joined anew with another key")


async def test_a_node_whose_certificate_has_ended_joins_again_with_its_key_and_a_new_token(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet:
        key = new_key()
        fleet.authority.node_life = timedelta(seconds=-1)
        with pytest.raises(CertificateError, match="is valid from"):
            await join(fleet.doors.clients, parse_join_token(await fleet.join_token()), A, key)
        fleet.authority.node_life = timedelta(hours=1)
        again = await join(fleet.doors.clients, parse_join_token(await fleet.join_token()), A, key)
        shown = Credentials(authority=again.authority, certificate=again.certificate, key=key)
        assert await connect(fleet.doors.agents, shown, "a") == (Code.OK, "")


async def test_a_coordinator_with_another_authority_gets_no_token(tmp_path: Path) -> None:
    async with secured(tmp_path / "real") as real, secured(tmp_path / "false") as false:
        token = parse_join_token(await real.join_token())
        with pytest.raises(PermissionDeniedError, match="is not the coordinator that is meant"):
            await join(false.doors.clients, token, A, new_key())
        async with false.client() as client:
            assert [entry for entry in await client.audit.list() if entry.what == "nodes.join"] == []


async def test_one_node_never_speaks_for_another(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as client:
        shown = await joined(fleet, "a")
        assert await connect(fleet.doors.agents, shown, "a") == (Code.OK, "")
        assert await connect(fleet.doors.agents, shown, "b") == (
            Code.PERMISSION_DENIED,
            "node/a does not speak for node b",
        )
        async with open_channel(fleet.doors.agents, shown) as channel:
            stub: Any = agents_pb2_grpc.AgentServiceStub(channel)
            call = stub.PushLogs()
            await call.write(pb.LogChunk(node="b", execution="x-1-0", data=b"forged"))
            assert await call.code() is Code.PERMISSION_DENIED
            answer = await stub.Renew(pb.RenewRequest(request=request_certificate(new_key(), NodeId("b"))))
            assert facts(answer.certificate).node == "a"
        refusals = [(e.who, e.what) for e in await client.audit.list() if "does not speak" in e.result]
        assert refusals == [("node/a", "agents.connect"), ("node/a", "agents.push_logs")]


async def test_certificates_that_do_not_count_open_no_door(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet:
        ours = await joined(fleet, "a")
        stranger = fleet.node("b")
        assert (await connect(fleet.doors.agents, stranger, "b"))[0] is Code.UNAUTHENTICATED
        twin = fleet.node("a")
        assert (await connect(fleet.doors.agents, twin, "a"))[0] is Code.UNAUTHENTICATED
        false, key = make_authority(wall_time()), new_key()
        forged = Credentials(
            authority=ours.authority,
            certificate=issue_node(false, request_certificate(key, A), A, wall_time()),
            key=key,
        )
        assert (await connect(fleet.doors.agents, forged, "a"))[0] is Code.UNAVAILABLE
        assert (await connect(fleet.doors.agents, Credentials(authority=ours.authority), "a"))[0] is Code.UNAVAILABLE
        assert (await connect(fleet.doors.agents, Credentials(), "a"))[0] is Code.UNAVAILABLE
        unbelieving = Credentials(authority=false.certificate, certificate=ours.certificate, key=ours.key)
        assert (await connect(fleet.doors.agents, unbelieving, "a"))[0] is Code.UNAVAILABLE


async def test_a_stream_ends_with_the_certificate_that_opened_it(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet:
        fleet.authority.node_life = timedelta(seconds=2)
        shown = await joined(fleet, "a")
        async with open_channel(fleet.doors.agents, shown) as channel:
            stub: Any = agents_pb2_grpc.AgentServiceStub(channel)
            call = stub.Connect()
            await call.write(hello("a"))
            async with asyncio.timeout(10):
                with suppress(grpc.aio.AioRpcError):
                    while await call.read() is not grpc.aio.EOF:
                        pass
                assert await call.code() is Code.UNAUTHENTICATED
