"""Nodes that have joined a fleet ask each other over TLS, each known by its own certificate."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import grpc
import grpc.aio
import pytest

from agent.core.actions import AskPeers
from agent.fencing.peer_server import answering
from agent.fencing.peers import PeerClient
from muster.domain.errors import PermissionDeniedError
from muster.domain.gangs.fence import PeerWord, Witness
from muster.domain.ids import NodeId
from muster.rpc.channel import NOTHING, Credentials, open_channel
from muster.rpc.v1 import trust_pb2, trust_pb2_grpc
from muster.trust.certificates import issue_node, issue_peer, make_authority, new_key, request_certificate
from tests.integration.attempt_part import ATTEMPT, LIMIT, SECRET, A, B, Part
from tests.integration.peer_certificates import FALSE, FLEET, NOW, shown_by
from tests.integration.secured import connect, joining, secured, until_ready

C = NodeId("c")


def shown_to_the_coordinator(node: NodeId) -> Credentials:
    """What it shows there, and nowhere else."""
    key = new_key()
    certificate = issue_node(FLEET, request_certificate(key, node), node, NOW)
    return Credentials(authority=FLEET.certificate, certificate=certificate, key=key)


EXPIRED = timedelta(seconds=-1)


@asynccontextmanager
async def asked_of(
    part: Part, answers: Callable[[], Credentials], asks: Callable[[], Credentials]
) -> AsyncIterator[tuple[PeerClient, AskPeers]]:
    """Node a, and a question for node b."""
    client = PeerClient(A, asks)
    try:
        async with answering(B, part, "127.0.0.1", 0, answers) as port:
            witness = Witness(node=B, address=f"127.0.0.1:{port}")
            yield client, AskPeers(attempt=ATTEMPT, asked_at=0.0, witnesses=(witness,), key=SECRET)
    finally:
        await client.close()


async def test_nodes_of_a_fleet_understand_each_other() -> None:
    part, a, b = Part(), shown_by(A), shown_by(B)
    async with asked_of(part, lambda: b, lambda: a) as (client, question):
        assert await client.ask(question, LIMIT) == {B: PeerWord.WITHOUT}
    assert part.given == [ATTEMPT]


@pytest.mark.parametrize(
    "asks",
    [
        pytest.param(shown_by(C), id="another node"),
        pytest.param(shown_by(A, FALSE), id="another authority"),
        pytest.param(shown_by(A, life=EXPIRED), id="expired"),
        pytest.param(shown_to_the_coordinator(A), id="the one for the coordinator"),
        pytest.param(Credentials(authority=FLEET.certificate), id="none"),
        pytest.param(NOTHING, id="plain text"),
    ],
)
async def test_who_asks_with_a_certificate_that_does_not_count_gets_no_word(asks: Credentials) -> None:
    """Although the question is signed with the secret of the attempt."""
    part, b = Part(), shown_by(B)
    async with asked_of(part, lambda: b, lambda: asks) as (client, question):
        assert await client.ask(question, LIMIT) == {}
    assert part.given == []


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param(shown_by(C), id="another node"),
        pytest.param(shown_by(B, FALSE), id="another authority"),
        pytest.param(shown_by(B, life=EXPIRED), id="expired"),
        pytest.param(shown_to_the_coordinator(B), id="the one for the coordinator"),
        pytest.param(NOTHING, id="plain text"),
    ],
)
async def test_who_answers_with_a_certificate_that_does_not_count_is_not_even_asked(answers: Credentials) -> None:
    part, a = Part(), shown_by(A)
    async with asked_of(part, lambda: answers, lambda: a) as (client, question):
        assert await client.ask(question, LIMIT) == {}
    assert part.given == []


async def test_a_renewed_certificate_is_shown_from_the_next_question_on() -> None:
    before, a, b = Credentials(authority=FLEET.certificate), shown_by(A), shown_by(B)
    part, answers, asks = Part(), [shown_to_the_coordinator(B)], [before]
    async with asked_of(part, lambda: answers[-1], lambda: asks[-1]) as (client, question):
        assert await client.ask(question, LIMIT) == {}
        answers.append(b)
        assert await client.ask(question, LIMIT) == {}
        asks.append(a)
        assert await client.ask(question, LIMIT) == {B: PeerWord.WITHOUT}


async def test_plain_text_is_neither_answered_nor_asked_beyond_this_machine() -> None:
    with pytest.raises(PermissionDeniedError, match=r"will not answer peers unencrypted at 0\.0\.0\.0"):
        async with answering(B, Part(), "0.0.0.0", 0):
            pass
    part, client = Part(), PeerClient(A)
    try:
        async with answering(B, part, "127.0.0.1", 0) as port:
            # Linux takes that address for this machine, but it does not say so.
            witness = Witness(node=B, address=f"0.0.0.0:{port}")
            ask = AskPeers(attempt=ATTEMPT, asked_at=0.0, witnesses=(witness,), key=SECRET)
            assert await client.ask(ask, LIMIT) == {}
    finally:
        await client.close()
    assert part.given == []


@pytest.mark.parametrize("issue", [issue_node, issue_peer])
async def test_a_node_that_is_called_like_the_coordinator_is_not_taken_for_it(issue: Callable[..., bytes]) -> None:
    name, key = NodeId("coordinator.muster"), new_key()
    shown = Credentials(
        authority=FLEET.certificate, certificate=issue(FLEET, request_certificate(key, name), name, NOW), key=key
    )
    async with (
        answering(name, Part(), "127.0.0.1", 0, lambda: shown) as port,
        open_channel(f"127.0.0.1:{port}", shown) as channel,
    ):
        stub: trust_pb2_grpc.JoinServiceAsyncStub = trust_pb2_grpc.JoinServiceStub(channel)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stub.Authority(trust_pb2.AuthorityRequest(), timeout=LIMIT)
    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_an_agent_that_has_joined_answers_nobody_in_plain_text(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as client, joining(fleet, "b", await fleet.join_token()):
        await until_ready(client, "b")
        port = int((tmp_path / "b" / "peer_port").read_text())
        key = new_key()
        certificate = fleet.authority.certify_peer(request_certificate(key, A), A, NOW)
        certified = Credentials(authority=fleet.authority.certificate, certificate=certificate, key=key)
        assert await word_of_b(port, NOTHING) == {}
        assert await word_of_b(port, certified) == {B: PeerWord.OVER}
        assert (await connect(fleet.doors.agents, certified, "a"))[0] is grpc.StatusCode.UNAUTHENTICATED


async def word_of_b(port: int, shown: Credentials) -> Mapping[NodeId, PeerWord]:
    """What node b says to node a, which shows that."""
    client, witness = PeerClient(A, lambda: shown), Witness(node=B, address=f"127.0.0.1:{port}")
    try:
        return await client.ask(AskPeers(attempt=ATTEMPT, asked_at=0.0, witnesses=(witness,), key=SECRET), LIMIT)
    finally:
        await client.close()


async def test_an_agent_finds_the_door_for_agents_again_where_it_has_another_port(tmp_path: Path) -> None:
    async with AsyncExitStack() as agents:
        async with secured(tmp_path) as before, before.client() as client:
            await agents.enter_async_context(joining(before, "b", await before.join_token()))
            await until_ready(client, "b")
        async with secured(tmp_path, before.doors.clients) as after, after.client() as client:
            assert after.doors.agents != before.doors.agents
            await until_ready(client, "b")
    assert "agents are served elsewhere now" in (tmp_path / "b.log").read_text()


async def test_nodes_understand_each_other_at_every_moment_of_a_change_of_the_authority() -> None:
    """While both authorities are known to all, whoever signed; and an open port believes the next one from then on."""
    following = make_authority(NOW)
    both = FLEET.certificate + following.certificate
    part, b = Part(), shown_by(B)
    answers = [b]

    def believing(shown: Credentials) -> Credentials:
        return replace(shown, authority=both)

    async with asked_of(part, lambda: answers[-1], lambda: believing(shown_by(A, following))) as (client, question):
        assert await client.ask(question, LIMIT) == {}
        answers.append(believing(b))
        assert await client.ask(question, LIMIT) == {B: PeerWord.WITHOUT}
        answers.append(believing(shown_by(B, following)))
        assert await client.ask(question, LIMIT) == {B: PeerWord.WITHOUT}
