"""A command on another node, as the agent sees it whose execution wants it: one call of the agent there."""

import asyncio
import logging
from dataclasses import dataclass

import grpc
import grpc.aio

from agent.attach.caller import GangRefusedError
from agent.attach.carrying import carried
from agent.attach.gang_site import CommandCaller, NotYetError
from agent.core.door.packets import GangErrorOutput, GangExit, GangInput, GangInputEnd, GangOutput, GangSignal
from agent.identity.peers import open_peer_channel
from muster.domain.attachments.frame import (
    LARGEST_FRAME_DATA,
    AttachmentEnded,
    AttachmentErrorOutput,
    AttachmentFrame,
    AttachmentInput,
    AttachmentInputEnd,
    AttachmentOpened,
    AttachmentOutput,
    AttachmentSignal,
    GangCommand,
)
from muster.domain.errors import PermissionDeniedError
from muster.domain.ids import NodeId
from muster.rpc.channel import Credentials
from muster.rpc.v1 import agents_pb2_grpc
from muster.rpc.v1 import attachments_pb2 as pb
from muster.wire.attachments.frames import attachment_frame_from_wire, attachment_frame_to_wire
from muster.wire.checks import WireError

log = logging.getLogger(__name__)

REMOTE_START_LIMIT = 15.0
"""Seconds until the other agent has answered: connected, and the command started there."""

COMMAND_OPTIONS = (
    ("grpc.max_receive_message_length", 4 * LARGEST_FRAME_DATA),
    ("grpc.max_send_message_length", 4 * LARGEST_FRAME_DATA),
    ("grpc.enable_http_proxy", 0),
    # Despite its name: how long one attempt to connect may take.
    ("grpc.min_reconnect_backoff_ms", 5_000),
    ("grpc.use_local_subchannel_pool", 1),
    # Bytes that may be under way to a side that does not read them.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", 256 * 1024),
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
)
"""Options of a connection for one command."""

_AGAIN = frozenset({grpc.StatusCode.ABORTED, grpc.StatusCode.RESOURCE_EXHAUSTED})
"""What an agent answers that may run the command in a moment."""


@dataclass(frozen=True, slots=True)
class PeerAgent:
    """The agent of another node."""

    node: NodeId
    address: str
    """`host:port`"""


async def run_at_peer(peer: PeerAgent, command: GangCommand, shown: Credentials, caller: CommandCaller) -> int:
    """The exit code of a signed command on another node.

    Raises NotYetError as long as nothing was started and another try may go well, and GangRefusedError.
    """
    try:
        channel = open_peer_channel(peer.address, peer.node, shown, COMMAND_OPTIONS)
    except PermissionDeniedError as error:
        raise GangRefusedError(str(error)) from None
    async with channel:
        stub: agents_pb2_grpc.PeerServiceAsyncStub = agents_pb2_grpc.PeerServiceStub(channel)
        remote = RemoteCommand(peer, stub.Run(), caller, daemon=command.daemon)
        await remote.ask(command)
        return await carried(remote.read, remote.feed, caller)


class RemoteCommand:
    """One command over one call."""

    def __init__(
        self,
        peer: PeerAgent,
        call: "grpc.aio.StreamStreamCall[pb.AttachmentFrame, pb.AttachmentFrame]",
        caller: CommandCaller,
        *,
        daemon: bool,
    ) -> None:
        self._peer = peer
        self._call = call
        self._caller = caller
        self._daemon = daemon
        self._first: AttachmentFrame | None = None
        """What came first, until it is read."""
        self._answered = False
        self._runs = False

    async def ask(self, command: GangCommand) -> None:
        """Ask for the command, and wait for a first answer. Raises NotYetError or GangRefusedError."""
        try:
            async with asyncio.timeout(REMOTE_START_LIMIT):
                await self._say(command)
                self._first = await self._hear()
        except TimeoutError:
            raise NotYetError(
                f"the agent of {self._peer.node} has not answered within {REMOTE_START_LIMIT:g} s"
            ) from None
        self._answered = True

    async def read(self) -> GangOutput | GangErrorOutput | GangExit:
        """What the command prints next, or how it ended; raises GangRefusedError."""
        while True:
            frame, self._first = self._first or await self._hear(), None
            match frame:
                case AttachmentOpened():
                    self._runs = True
                    await self._caller.begun()
                case AttachmentOutput(data=data):
                    return GangOutput(data=data)
                case AttachmentErrorOutput(data=data):
                    return GangErrorOutput(data=data)
                case AttachmentEnded(code=code):
                    return GangExit(code=code)
                case None if self._runs and self._daemon:
                    return GangExit(code=0)  # it goes on without the line
                case _:
                    raise GangRefusedError(f"the line to the agent of {self._peer.node} was lost")

    async def feed(self, packet: GangInput | GangInputEnd | GangSignal) -> None:
        """Give it input or a signal; waits while it does not read."""
        match packet:
            case GangInput(data=data):
                await self._say(AttachmentInput(data=data))
            case GangInputEnd():
                await self._say(AttachmentInputEnd())
            case GangSignal(number=number):
                await self._say(AttachmentSignal(number=number))

    async def _say(self, frame: AttachmentFrame) -> None:
        try:
            await self._call.write(attachment_frame_to_wire(frame))
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            return  # the call has ended, which whoever reads hears

    async def _hear(self) -> AttachmentFrame | None:
        """The next frame; None: the line is lost."""
        try:
            message = await self._call.read()
            return attachment_frame_from_wire(message) if isinstance(message, pb.AttachmentFrame) else None
        except grpc.aio.AioRpcError as error:
            if not self._answered:
                raise self._refusal(error) from None
            log.info("line of a gang command lost", extra={"node": self._peer.node, "cause": error.details()})
            return None
        except WireError as error:
            raise GangRefusedError(f"the agent of {self._peer.node} cannot be understood: {error}") from None

    def _refusal(self, error: grpc.aio.AioRpcError) -> NotYetError | GangRefusedError:
        node, address, said = self._peer.node, self._peer.address, error.details() or ""
        match error.code():
            case code if code in _AGAIN:
                return NotYetError(said)
            case grpc.StatusCode.UNAVAILABLE | grpc.StatusCode.CANCELLED:
                log.info("agent of another node cannot be reached", extra={"node": node, "cause": said})
                return NotYetError(
                    f"the agent of {node} cannot be reached at {address}; that port must be open between the nodes, "
                    f"and `muster nodes {node}` tells whether its agent is there"
                )
            case grpc.StatusCode.UNIMPLEMENTED:
                return GangRefusedError(f"the agent of {node} runs no commands for others; upgrade it")
            case _:
                return GangRefusedError(said)
