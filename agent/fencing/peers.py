"""Questions between the agents of an attempt: whether the coordinator is away for all of them.

Questions and answers are signed with the attempt's secret. A question names whom it is for, so that nobody's word is
taken for another's. Where nodes have certificates, both sides show theirs (TLS): the asker believes nobody but the
witness, and is answered only as the node that it says it is. To an attempt that is not known here the answer is a
status without a signature, as there is no secret to sign with; whoever forges that can only take a permit away, and
could drop the question as well.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Protocol

import grpc
import grpc.aio

from agent.core.actions import AskPeers
from muster.domain.errors import PermissionDeniedError
from muster.domain.gangs.fence import PeerWord, Witness
from muster.domain.ids import AttemptId, JobId, NodeId
from muster.rpc.channel import NOTHING, Credentials, is_loopback, served_credentials
from muster.rpc.v1 import agents_pb2 as pb
from muster.rpc.v1 import agents_pb2_grpc
from muster.trust.identity import Identity
from muster.trust.names import peer_name

log = logging.getLogger(__name__)

ANSWER_LIMIT = 1.5
"""Seconds for one round; less than lies between two."""
LONGEST_MESSAGE = 4096
MOST_AT_ONCE = 256
"""Questions that are being answered."""
MOST_CONNECTIONS = 2048
"""Far more than there are nodes that have this one as a witness."""
HANDSHAKE_MS = 5_000
IDLE_MS = 60_000
"""Milliseconds without a question after which a connection is closed; who asks does so every two seconds."""
NONCE = 16

Shown = Callable[[], Credentials]
"""What the node shows; asked each time, because certificates are renewed."""

OPTIONS = (
    ("grpc.max_receive_message_length", LONGEST_MESSAGE),
    ("grpc.max_send_message_length", LONGEST_MESSAGE),
    ("grpc.enable_http_proxy", 0),
)
PEER_SERVER_OPTIONS = (
    *OPTIONS,
    ("grpc.so_reuseport", 0),
    ("grpc.max_concurrent_streams", 64),
    ("grpc.max_allowed_incoming_connections", MOST_CONNECTIONS),
    ("grpc.server_handshake_timeout_ms", HANDSHAKE_MS),
    ("grpc.max_connection_idle_ms", IDLE_MS),
)
CLIENT_OPTIONS = (
    *OPTIONS,
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.min_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.use_local_subchannel_pool", 1),
)


class Respondent(Protocol):
    """The part of the agent that knows the answers."""

    def secret(self, attempt: AttemptId) -> bytes | None:
        """The key with which questions about an attempt are signed; None: it is not known here."""
        ...

    def answer(self, attempt: AttemptId) -> PeerWord:
        """The word; it counts as given from here on."""
        ...


class PeerServer(agents_pb2_grpc.PeerServiceServicer):
    """Answers for one node."""

    def __init__(self, node: NodeId, respondent: Respondent, *, certified: bool) -> None:
        self._node = node
        self._respondent = respondent
        self._certified = certified
        """Whether peers show certificates."""

    async def Ask(  # noqa: N802 - the service definition names it
        self, request: pb.PeerQuestion, context: "grpc.aio.ServicerContext[pb.PeerQuestion, pb.PeerAnswer]"
    ) -> pb.PeerAnswer:
        """The word of this node, to whoever shows that it belongs to the attempt."""
        if self._certified and not _shows_itself(context, NodeId(request.node)):
            await context.abort(
                grpc.StatusCode.PERMISSION_DENIED, "the question is not that of the node that shows itself"
            )
        attempt = AttemptId(JobId(request.job), request.attempt)
        secret = self._respondent.secret(attempt)
        if not secret:
            await context.abort(grpc.StatusCode.NOT_FOUND, "this attempt is not known here")
        assert secret
        if len(request.nonce) != NONCE or not _is_same(
            request.signature, _question_signature(secret, request, self._node)
        ):
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, "the question is not signed with the secret")
        word = self._respondent.answer(attempt)
        return pb.PeerAnswer(word=word, signature=_answer_signature(secret, request, self._node, word))


@asynccontextmanager
async def answering(
    node: NodeId, respondent: Respondent, address: str, port: int, shown: Shown = lambda: NOTHING
) -> AsyncIterator[int]:
    """Answer peers while the context is open; gives the port. Raises OSError if that cannot be had.

    A node without a certificate is one of `muster up`: it answers in plain text, and only on this machine.
    """
    server = grpc.aio.server(options=PEER_SERVER_OPTIONS, maximum_concurrent_rpcs=MOST_AT_ONCE)
    authority, listen = shown().authority, _joined(address, port)
    peers = PeerServer(node, respondent, certified=authority is not None)
    agents_pb2_grpc.add_PeerServiceServicer_to_server(peers, server)
    if authority is None and not is_loopback(listen):
        raise PermissionDeniedError(f"will not answer peers unencrypted at {address}, which other machines can reach")
    try:
        if authority is None:
            bound = server.add_insecure_port(listen)
        else:
            bound = server.add_secure_port(
                listen, served_credentials(lambda: _identity(shown()), lambda: _authorities(shown()))
            )
    except RuntimeError as error:
        raise OSError(f"port {port} of {address} cannot be had for questions of peers: {error}") from error
    await server.start()
    try:
        yield bound
    finally:
        await server.stop(None)


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
        question.signature = _question_signature(ask.key, question, witness.node)
        stub: agents_pb2_grpc.PeerServiceAsyncStub = agents_pb2_grpc.PeerServiceStub(self._channel(witness))
        try:
            answer = await stub.Ask(question, timeout=limit)
            word = PeerWord(answer.word)
        except grpc.aio.AioRpcError as error:
            return PeerWord.OVER if error.code() is grpc.StatusCode.NOT_FOUND else None
        except ValueError:
            return None
        genuine = _answer_signature(ask.key, question, witness.node, word)
        return word if _is_same(answer.signature, genuine) else None

    def _channel(self, witness: Witness) -> grpc.aio.Channel:
        if witness not in self._channels:
            self._channels[witness] = _opened(witness, self._opened_with)
        return self._channels[witness]


def _opened(witness: Witness, shown: Credentials) -> grpc.aio.Channel:
    """A channel to nobody else than the agent of that node."""
    if shown.authority is None:
        return grpc.aio.insecure_channel(witness.address, options=CLIENT_OPTIONS)
    tls = grpc.ssl_channel_credentials(shown.authority, shown.key, shown.certificate)
    named = ("grpc.ssl_target_name_override", peer_name(witness.node))
    return grpc.aio.secure_channel(witness.address, tls, (*CLIENT_OPTIONS, named))


def _shows_itself(context: "grpc.aio.ServicerContext[pb.PeerQuestion, pb.PeerAnswer]", node: NodeId) -> bool:
    """Whether the certificate that was shown, which gRPC has verified, is that with which this node asks others."""
    return list(context.auth_context().get("peer_dns", ())) == [peer_name(node).encode()]


def _authorities(shown: Credentials) -> bytes:
    assert shown.authority is not None
    return shown.authority


def _identity(shown: Credentials) -> Identity:
    assert shown.certificate is not None
    assert shown.key is not None
    return Identity(certificate=shown.certificate, key=shown.key)


def _question_signature(key: bytes, question: pb.PeerQuestion, witness: NodeId) -> bytes:
    return _signature(key, "question", *_fields(question, witness))


def _answer_signature(key: bytes, question: pb.PeerQuestion, witness: NodeId, word: PeerWord) -> bytes:
    return _signature(key, "answer", *_fields(question, witness), word)


def _fields(question: pb.PeerQuestion, witness: NodeId) -> tuple[str, ...]:
    return (question.job, str(question.attempt), question.node, witness, question.nonce.hex())


def _signature(key: bytes, *fields: str) -> bytes:
    """Each field with its length, so that no two lists of fields look the same."""
    from hmac import digest  # noqa: PLC0415 - OpenSSL, once somebody asks

    encoded = [field.encode() for field in fields]
    return digest(key, b"".join(len(each).to_bytes(4) + each for each in encoded), "sha256")


def _is_same(shown: bytes, genuine: bytes) -> bool:
    """Takes as long for every wrong one."""
    from hmac import compare_digest  # noqa: PLC0415 - OpenSSL, once somebody asks

    return compare_digest(shown, genuine)


def _joined(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
