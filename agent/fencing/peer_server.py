"""What a node answers to the agents of others: whether the coordinator is away, commands in its executions, pieces."""

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

import grpc
import grpc.aio

from agent.attach.for_peers import MOST_COMMANDS_FOR_OTHERS, CommandRejectedError, CommandsForPeers
from agent.core.door.gang_rules import CommandFault
from agent.fencing.peers import LONGEST_MESSAGE, NONCE, OPTIONS, answer_signature, question_signature
from agent.identity.peers import Shown, is_shown
from agent.swarm.requests import PIECE_MESSAGE
from agent.swarm.serving import MOST_PIECES_ASKED, PieceFault, PieceRefusedError, PiecesForPeers
from muster.domain.attachments.frame import LARGEST_FRAME_DATA, AttachmentFrame
from muster.domain.errors import PermissionDeniedError
from muster.domain.gangs.fence import PeerWord
from muster.domain.ids import AttemptId, JobId, NodeId
from muster.rpc.channel import NOTHING, Credentials, is_loopback, served_credentials
from muster.rpc.v1 import agents_pb2 as pb
from muster.rpc.v1 import agents_pb2_grpc, attachments_pb2
from muster.trust.attempt_signature import same_signature
from muster.trust.identity import Identity
from muster.wire.attachments.frames import attachment_frame_from_wire, attachment_frame_to_wire
from muster.wire.checks import WireError

log = logging.getLogger(__name__)

MOST_AT_ONCE = 256
"""Questions that are being answered."""
MOST_CALLS = MOST_AT_ONCE + MOST_COMMANDS_FOR_OTHERS + MOST_PIECES_ASKED
"""Questions, commands and pieces, which never take the places of questions."""
MOST_BEING_REFUSED = 256
"""Calls beyond these that are being told so."""
MOST_CONNECTIONS = 2048
"""Far more than there are nodes that have this one as a witness, and commands for others."""
HANDSHAKE_MS = 5_000
IDLE_MS = 60_000
"""Milliseconds without a question after which a connection is closed; who asks does so every two seconds."""
LONGEST_FRAME = 4 * LARGEST_FRAME_DATA
"""Bytes of one message of a command; a question is refused that has more than its own limit."""

PEER_SERVER_OPTIONS = (
    *OPTIONS[2:],
    ("grpc.max_receive_message_length", LONGEST_FRAME),
    ("grpc.max_send_message_length", max(LONGEST_FRAME, 2 * PIECE_MESSAGE)),
    ("grpc.so_reuseport", 0),
    ("grpc.max_concurrent_streams", 64),
    ("grpc.max_allowed_incoming_connections", MOST_CONNECTIONS),
    ("grpc.server_handshake_timeout_ms", HANDSHAKE_MS),
    ("grpc.max_connection_idle_ms", IDLE_MS),
    # Bytes that may be under way to a side that does not read them.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", 256 * 1024),
    # A node that is gone without a word is noticed, and the commands that it wanted are hung up.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),
    ("grpc.http2.max_ping_strikes", 0),
)

_STATUS: Mapping[CommandFault, grpc.StatusCode] = {
    CommandFault.UNKNOWN: grpc.StatusCode.NOT_FOUND,
    CommandFault.UNPROVEN: grpc.StatusCode.PERMISSION_DENIED,
    CommandFault.TOO_EARLY: grpc.StatusCode.ABORTED,
    CommandFault.TOO_MANY: grpc.StatusCode.RESOURCE_EXHAUSTED,
    CommandFault.NOT_HERE: grpc.StatusCode.FAILED_PRECONDITION,
}

_PIECE_STATUS: Mapping[PieceFault, grpc.StatusCode] = {
    PieceFault.NOT_HERE: grpc.StatusCode.NOT_FOUND,
    PieceFault.UNPROVEN: grpc.StatusCode.PERMISSION_DENIED,
    PieceFault.TOO_MANY: grpc.StatusCode.RESOURCE_EXHAUSTED,
    PieceFault.WRONG: grpc.StatusCode.INVALID_ARGUMENT,
}

AskContext = grpc.aio.ServicerContext[pb.PeerQuestion, pb.PeerAnswer]
RunContext = grpc.aio.ServicerContext[attachments_pb2.AttachmentFrame, attachments_pb2.AttachmentFrame]
PiecesContext = grpc.aio.ServicerContext[pb.PieceRequest, pb.PieceData]


class Respondent(Protocol):
    """The part of the agent that knows the answers."""

    def secret(self, attempt: AttemptId) -> bytes | None:
        """The key with which questions about an attempt are signed; None: it is not known here."""
        ...

    def answer(self, attempt: AttemptId) -> PeerWord:
        """The word; it counts as given from here on."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenToPeers:
    """What a node does for others beside answering their questions."""

    commands: CommandsForPeers | None = None
    """None: it runs no commands."""
    pieces: PiecesForPeers | None = None
    """None: it gives no pieces."""


GIVES_NOTHING = GivenToPeers()
"""A node that answers questions, and nothing else."""


class PeerServer(agents_pb2_grpc.PeerServiceServicer):
    """Answers for one node."""

    def __init__(self, node: NodeId, respondent: Respondent, given: GivenToPeers, *, certified: bool) -> None:
        self._node = node
        self._respondent = respondent
        self._commands = given.commands
        self._pieces = given.pieces
        self._certified = certified
        """Whether peers show certificates."""
        self._asked = 0

    async def Ask(self, request: pb.PeerQuestion, context: "AskContext") -> pb.PeerAnswer:
        """The word of this node, to whoever shows that it belongs to the attempt."""
        if self._asked >= MOST_AT_ONCE or request.ByteSize() > LONGEST_MESSAGE:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many questions at once, or too long a one")
        self._asked += 1
        try:
            return await self._answer(request, context)
        finally:
            self._asked -= 1

    async def Run(self, frames: object, context: "RunContext") -> None:  # type: ignore[override]  # the stubs know no answer by `context.write`
        """Run a command in an execution of this node, for whoever shows that it belongs to the attempt."""
        del frames  # which are read from the context one by one
        if self._commands is None:
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, f"{self._node} runs no commands for others")
        assert self._commands
        try:
            await self._commands.serve(ServedFrames(context), lambda node: self._shows_itself(context, node))
        except CommandRejectedError as error:
            log.info("command of another node refused", extra={"node": self._node, "cause": str(error)})
            await context.abort(_STATUS[error.fault], str(error))
        except WireError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except TimeoutError:
            await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "nothing was asked for in time")
        except ConnectionError as error:
            await context.abort(grpc.StatusCode.CANCELLED, str(error))

    async def Pieces(self, request: pb.PieceRequest, context: "PiecesContext") -> None:  # type: ignore[override]  # the stubs know no answer by `context.write`
        """Give a piece of what the nodes of an attempt fetch, to whoever shows that it may have it."""
        if self._pieces is None:
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, f"{self._node} gives no pieces to others")
        assert self._pieces
        try:
            async with aclosing(self._pieces.serve(request, lambda node: self._shows_itself(context, node))) as given:
                async for data in given:
                    await context.write(data)
        except PieceRefusedError as error:
            await context.abort(_PIECE_STATUS[error.fault], str(error))

    async def _answer(self, request: pb.PeerQuestion, context: "AskContext") -> pb.PeerAnswer:
        if not self._shows_itself(context, NodeId(request.node)):
            await context.abort(
                grpc.StatusCode.PERMISSION_DENIED, "the question is not that of the node that shows itself"
            )
        attempt = AttemptId(JobId(request.job), request.attempt)
        secret = self._respondent.secret(attempt)
        if not secret:
            await context.abort(grpc.StatusCode.NOT_FOUND, "this attempt is not known here")
        assert secret
        if len(request.nonce) != NONCE or not same_signature(
            request.signature, question_signature(secret, request, self._node)
        ):
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, "the question is not signed with the secret")
        word = self._respondent.answer(attempt)
        return pb.PeerAnswer(word=word, signature=answer_signature(secret, request, self._node, word))

    def _shows_itself(self, context: "AskContext | RunContext | PiecesContext", node: NodeId) -> bool:
        return not self._certified or is_shown(context.auth_context(), node)


class ServedFrames:
    """The stream of one call, as frames."""

    def __init__(self, context: "RunContext") -> None:
        self._context = context

    async def read(self) -> AttachmentFrame | None:
        """The next frame; None: there will be none. Raises WireError."""
        message = await self._context.read()
        return attachment_frame_from_wire(message) if isinstance(message, attachments_pb2.AttachmentFrame) else None

    async def write(self, frame: AttachmentFrame) -> None:
        """Send a frame; waits while the other side does not read."""
        await self._context.write(attachment_frame_to_wire(frame))


@asynccontextmanager
async def answering(
    node: NodeId,
    respondent: Respondent,
    address: str,
    port: int,
    shown: Shown = lambda: NOTHING,
    given: GivenToPeers = GIVES_NOTHING,
) -> AsyncIterator[int]:
    """Answer peers while the context is open; gives the port. Raises OSError if that cannot be had.

    A node without a certificate is one of `muster up`: it answers in plain text, and only on this machine.
    """
    server = grpc.aio.server(options=PEER_SERVER_OPTIONS, maximum_concurrent_rpcs=MOST_CALLS + MOST_BEING_REFUSED)
    authority, listen = shown().authority, _joined(address, port)
    peers = PeerServer(node, respondent, given, certified=authority is not None)
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


def _authorities(shown: Credentials) -> bytes:
    assert shown.authority is not None
    return shown.authority


def _identity(shown: Credentials) -> Identity:
    assert shown.certificate is not None
    assert shown.key is not None
    return Identity(certificate=shown.certificate, key=shown.key)


def _joined(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
