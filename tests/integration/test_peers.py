"""Peers believe what is signed with the secret of their attempt, and nothing else."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import grpc
import grpc.aio
import pytest

from agent.core.actions import AskPeers
from agent.fencing.peer_server import answering
from agent.fencing.peers import NONCE, PeerClient
from muster.domain.gangs.fence import PeerWord, Witness
from muster.domain.ids import AttemptId, JobId, NodeId
from muster.rpc.v1 import agents_pb2 as pb
from muster.rpc.v1 import agents_pb2_grpc
from muster.rpc.v1.attachments_pb2 import AttachmentFrame
from tests.integration.attempt_part import ATTEMPT, LIMIT, SECRET, A, B, Part


@asynccontextmanager
async def peer(part: Part, *, calls_itself: NodeId = B) -> AsyncIterator[tuple[PeerClient, AskPeers]]:
    """Node a's client, and a question for node b."""
    client = PeerClient(A)
    try:
        async with answering(calls_itself, part, "127.0.0.1", 0) as port:
            witness = Witness(node=B, address=f"127.0.0.1:{port}")
            yield client, AskPeers(attempt=ATTEMPT, asked_at=0.0, witnesses=(witness,), key=SECRET)
    finally:
        await client.close()


@pytest.mark.parametrize("word", PeerWord)
async def test_a_signed_question_gets_the_word(word: PeerWord) -> None:
    async with peer(Part(word)) as (client, question):
        assert await client.ask(question, LIMIT) == {B: word}


async def test_an_attempt_that_is_not_known_there_is_over() -> None:
    part = Part(secrets={})
    async with peer(part) as (client, question):
        assert await client.ask(question, LIMIT) == {B: PeerWord.OVER}
    assert part.given == []


async def test_a_question_with_another_secret_gets_no_word_and_none_is_given() -> None:
    part = Part()
    async with peer(part) as (client, question):
        assert await client.ask(replace(question, key=b"another"), LIMIT) == {}
    assert part.given == []


async def test_a_question_about_another_attempt_needs_its_secret() -> None:
    part = Part()
    part.secrets[AttemptId(JobId("j"), 2)] = b"another"
    async with peer(part) as (client, question):
        assert await client.ask(replace(question, attempt=AttemptId(JobId("j"), 2)), LIMIT) == {}
    assert part.given == []


async def test_the_word_of_another_node_of_the_attempt_is_not_taken_for_that_of_the_witness() -> None:
    """Addresses and ports are used again."""
    part = Part()
    async with peer(part, calls_itself=NodeId("c")) as (client, question):
        assert await client.ask(question, LIMIT) == {}
    assert part.given == []


async def test_a_witness_without_an_address_or_behind_a_dead_one_does_not_answer() -> None:
    async with peer(Part()) as (client, question):
        silent = (Witness(node=NodeId("c"), address=""), Witness(node=NodeId("d"), address="127.0.0.1:1"))
        asked = replace(question, witnesses=(*silent, *question.witnesses))
        assert await client.ask(asked, LIMIT) == {B: PeerWord.WITHOUT}


async def test_an_answer_with_another_signature_does_not_count() -> None:
    class Liar(agents_pb2_grpc.PeerServiceServicer):
        async def Ask(
            self, request: pb.PeerQuestion, context: "grpc.aio.ServicerContext[pb.PeerQuestion, pb.PeerAnswer]"
        ) -> pb.PeerAnswer:
            del context
            asked.append(request.node)
            return pb.PeerAnswer(word=PeerWord.WITHOUT, signature=request.signature)

        async def Run(
            self, request_iterator: AsyncIterator[AttachmentFrame], _context: object
        ) -> AsyncIterator[AttachmentFrame]:
            async for frame in request_iterator:
                yield frame

        async def Pieces(self, request: pb.PieceRequest, _context: object) -> AsyncIterator[pb.PieceData]:
            yield pb.PieceData(data=request.signature)

    asked: list[str] = []
    server = grpc.aio.server()
    agents_pb2_grpc.add_PeerServiceServicer_to_server(Liar(), server)
    witness = Witness(node=B, address=f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}")
    await server.start()
    client = PeerClient(A)
    try:
        ask = AskPeers(attempt=ATTEMPT, asked_at=0.0, witnesses=(witness,), key=SECRET)
        assert await client.ask(ask, LIMIT) == {}
        assert asked == [A]
    finally:
        await client.close()
        await server.stop(None)


async def test_a_signature_is_checked_before_anything_is_said() -> None:
    part = Part()
    async with peer(part) as (_, question), grpc.aio.insecure_channel(question.witnesses[0].address) as channel:
        stub: agents_pb2_grpc.PeerServiceAsyncStub = agents_pb2_grpc.PeerServiceStub(channel)
        bare = pb.PeerQuestion(job="j", attempt=1, node="a", nonce=b"n" * NONCE)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stub.Ask(bare, timeout=LIMIT)
    assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
    assert part.given == []


async def test_a_port_that_is_taken_is_said_so() -> None:
    async with peer(Part()) as (_, question):
        port = int(question.witnesses[0].address.rpartition(":")[2])
        with pytest.raises(OSError, match=f"port {port} of 127.0.0.1 cannot be had"):
            async with answering(B, Part(), "127.0.0.1", port):
                pass
