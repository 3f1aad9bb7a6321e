"""Questions between the agents of an attempt: whether the coordinator is away for all of them.

Questions and answers are signed with the attempt's secret. A question names whom it is for, so that nobody's word is
taken for another's. Where nodes have certificates, both sides show theirs (TLS): the asker believes nobody but the
witness, and is answered only as the node that it says it is. To an attempt that is not known here the answer is a
status without a signature, as there is no secret to sign with; whoever forges that can only take a permit away, and
could drop the question as well.
"""

import asyncio
import os
from collections.abc import Mapping

import grpc
import grpc.aio

from agent.core.actions import AskPeers
from agent.identity.peers import Shown, open_peer_channel
from muster.domain.gangs.fence import PeerWord, Witness
from muster.domain.ids import NodeId
from muster.rpc.channel import NOTHING, is_loopback
from muster.rpc.v1 import agents_pb2 as pb
from muster.rpc.v1 import agents_pb2_grpc
from muster.trust.attempt_signature import attempt_signature, same_signature

ANSWER_LIMIT = 1.5
"""Seconds for one round; less than lies between two."""
LONGEST_MESSAGE = 4096
NONCE = 16

OPTIONS = (
    ("grpc.max_receive_message_length", LONGEST_MESSAGE),
    ("grpc.max_send_message_length", LONGEST_MESSAGE),
    ("grpc.enable_http_proxy", 0),
)
CLIENT_OPTIONS = (
    *OPTIONS,
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.min_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.use_local_subchannel_pool", 1),
)


class PeerClient:
    """Asks for one node; channels stay open from one round to the next."""

    def __init__(self, node: NodeId, shown: Shown = lambda: NOTHING) -> None:
        self._node = node
        self._shown = shown
        self._opened_with = NOTHING
        self._channels: dict[Witness, grpc.aio.Channel] = {}

    async def ask(self, ask: AskPeers, limit: float = ANSWER_LIMIT) -> Mapping[NodeId, PeerWord]:
        """The words of the witnesses that answer in time; in plain text nobody on another machine is asked."""
        if self._opened_with != self._shown():
            await self.close()
            self._opened_with = self._shown()
        async with asyncio.TaskGroup() as tasks:
            asked = {
                witness.node: tasks.create_task(self._ask(ask, witness, limit), name=f"ask {witness.node}")
                for witness in ask.witnesses
                if witness.address and (self._opened_with.authority is not None or is_loopback(witness.address))
            }
        words = {node: task.result() for node, task in asked.items()}
        return {node: word for node, word in words.items() if word is not None}

    async def close(self) -> None:
        """Let go of the channels; another question opens them again."""
        channels, self._channels = list(self._channels.values()), {}
        for channel in channels:
            await channel.close()

    async def _ask(self, ask: AskPeers, witness: Witness, limit: float) -> PeerWord | None:
        """The word of one; None: there is none that counts."""
        job, attempt = ask.attempt
        question = pb.PeerQuestion(job=job, attempt=attempt, node=self._node, nonce=os.urandom(NONCE))
        question.signature = question_signature(ask.key, question, witness.node)
        stub: agents_pb2_grpc.PeerServiceAsyncStub = agents_pb2_grpc.PeerServiceStub(self._channel(witness))
        try:
            answer = await stub.Ask(question, timeout=limit)
            word = PeerWord(answer.word)
        except grpc.aio.AioRpcError as error:
            return PeerWord.OVER if error.code() is grpc.StatusCode.NOT_FOUND else None
        except ValueError:
            return None
        genuine = answer_signature(ask.key, question, witness.node, word)
        return word if same_signature(answer.signature, genuine) else None

    def _channel(self, witness: Witness) -> grpc.aio.Channel:
        if witness not in self._channels:
            self._channels[witness] = open_peer_channel(
                witness.address, witness.node, self._opened_with, CLIENT_OPTIONS
            )
        return self._channels[witness]


def question_signature(key: bytes, question: pb.PeerQuestion, witness: NodeId) -> bytes:
    """What shows that a question is of the attempt, and for that witness."""
    return attempt_signature(key, "question", *_fields(question, witness))


def answer_signature(key: bytes, question: pb.PeerQuestion, witness: NodeId, word: PeerWord) -> bytes:
    """What shows that a word is of the attempt, and answers that question."""
    return attempt_signature(key, "answer", *_fields(question, witness), word)


def _fields(question: pb.PeerQuestion, witness: NodeId) -> tuple[str, ...]:
    return (question.job, str(question.attempt), question.node, witness, question.nonce.hex())
