"""The agent's connection to the coordinator: moves bytes; what they say is decided in `agent/core/stream.py`."""

import asyncio
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, assert_never

import grpc
import grpc.aio

from agent.core.stream import (
    Acknowledged,
    Beat,
    Broke,
    Heard,
    Leave,
    Opened,
    PassOn,
    PlanHeard,
    SayHello,
    StreamAction,
    StreamEvent,
    StreamState,
    StreamTimePassed,
    TakeUp,
    Welcomed,
    advance,
)
from agent.fencing.clock import Clock
from agent.logs.push import LogPusher, StreamLostError, write
from agent.mailbox import Inbox, Outbox
from agent.secrets.calls import SecretCalls
from muster import wire
from muster.domain.attachments.request import AttachmentOrder, NoticeForAttached
from muster.domain.data.kept.image import ImageClearance
from muster.domain.data.kept.pull import ImagePull
from muster.domain.data.volume import VolumeRemoval
from muster.rpc import protocol
from muster.rpc.channel import AGENT_CHANNEL_OPTIONS, Credentials, open_channel
from muster.rpc.v1 import agents_pb2 as pb
from muster.rpc.v1 import agents_pb2_grpc, attachments_pb2
from muster.wire import checks
from muster.wire.attachments.requests import attachment_order_from_wire, notice_for_attached_from_wire
from muster.wire.data.image_pulls import image_order_from_wire
from muster.wire.data.volumes import volume_removal_from_wire

log = logging.getLogger(__name__)

LISTENS = 0.05
"""Seconds between looks at whether somebody listens again: a coordinator that restarts finds its agents in a second."""
LOGS_PAUSE = 1.0
"""Seconds between attempts to carry logs while orders come through."""

Stream = grpc.aio.StreamStreamCall[pb.AgentMessage, pb.CoordinatorMessage]


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinator:
    """Where the coordinator is, and what is shown to it."""

    address: Callable[[], str]
    """`host:port`; asked at every new connection, as it may have moved."""
    credentials: Callable[[], Credentials] = Credentials
    """Asked at every new connection, because certificates are renewed."""
    renew_soon: Callable[[float], None] = lambda _: None
    """Called when the certificate is to be renewed before it is due, within so many seconds."""
    patience: float = 15.0
    """Seconds in which it must answer Hello; more than it needs for a whole fleet that comes back at once."""


class Owner(Protocol):
    """The node at this end of the link."""

    def hello(self) -> pb.Hello:
        """The whole truth about it, now."""
        ...

    def applied(self, stream: int) -> int:
        """Revision of the last plan on a stream that was applied; 0: none was."""
        ...

    def telemetry(self) -> bytes:
        """What was used since this was asked for before, as it travels; empty: nothing is known."""
        ...


class AttachmentsOfNode(Protocol):
    """What serves attachments to the executions of the node."""

    def begin(self, order: AttachmentOrder) -> None:
        """Serve an attachment."""
        ...

    def tell(self, notice: NoticeForAttached) -> None:
        """Tell people something who are attached."""
        ...

    def connected(self) -> None:
        """There is a connection to the coordinator: say what it has not heard."""
        ...


class VolumesOfNode(Protocol):
    """What knows the volumes that the node keeps."""

    def remove(self, order: VolumeRemoval) -> None:
        """Have a volume removed, and answer."""
        ...


class ImagesOfNode(Protocol):
    """What knows the images that the agent has pulled."""

    def order(self, order: ImageClearance | ImagePull) -> None:
        """Have images cleared or pulled, and answer."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """Where messages of a node come from and go to, beside plans and reports."""

    inbox: Inbox
    outbox: Outbox
    logs: LogPusher
    secrets: SecretCalls
    attachments: AttachmentsOfNode
    volumes: VolumesOfNode
    images: ImagesOfNode


class Link:
    """Keeps a stream to the coordinator open as long as it runs."""

    def __init__(self, coordinator: Coordinator, owner: Owner, mail: Mail, clock: Clock) -> None:
        """Connect nobody yet; `clock` is that of fencing."""
        self._coordinator = coordinator
        self._owner = owner
        self._mail = mail
        self._clock = clock
        self._stream = StreamState(clock.shown(coordinator.patience))
        self._left: asyncio.Queue[str] = asyncio.Queue()
        """Why the present stream is to be left."""
        self._taken_up = asyncio.Event()
        """Set while logs and secrets can be carried beside the stream."""
        self._renewed = asyncio.Event()
        self._alarm: tuple[float, asyncio.TimerHandle] | None = None
        """When time is to pass for the stream, and what sees to it."""

    @property
    def connected(self) -> bool:
        """Whether the coordinator has said Welcome on a stream that is still open."""
        return self._stream.connected

    def reconnect(self) -> None:
        """Open the stream anew, with the address and the credentials that there are now; what runs goes on."""
        self._renewed.set()

    async def run(self) -> None:
        """Connect, and connect again, until cancelled."""
        while True:
            await self._show(self._coordinator.address(), self._coordinator.credentials())

    async def _show(self, address: str, shown: Credentials) -> None:
        """Connect, and connect again, until there are another address or other credentials."""
        async with open_channel(address, shown, AGENT_CHANNEL_OPTIONS) as channel:
            stub: agents_pb2_grpc.AgentServiceAsyncStub = agents_pb2_grpc.AgentServiceStub(channel)
            while (address, shown) == (self._coordinator.address(), self._coordinator.credentials()):
                try:
                    await self._connected(stub, shown)
                except (grpc.aio.AioRpcError, StreamLostError, wire.WireError) as error:
                    log.warning("no connection to the coordinator", extra={"cause": _cause(error)})
                _stay_cancelled()
                await rest(channel, self._stream.pause * random.uniform(0.5, 1.5))  # noqa: S311 - jitter, not a secret

    async def _connected(self, stub: "agents_pb2_grpc.AgentServiceAsyncStub", shown: Credentials) -> None:
        """One stream from Hello to its end."""
        call = stub.Connect(metadata=shown.metadata)
        self._renewed.clear()
        self._left = asyncio.Queue()
        lost: Exception | None = None
        try:
            messages = self._mail.outbox.open()
            # Nothing is awaited between Hello's content and its place in the queue, so no later report can overtake it.
            self._advance(Opened())
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(_write(call, messages), name="link: write")
                tasks.create_task(self._until_left(), name="link: left")
                tasks.create_task(self._until_overflow(), name="link: overflow")
                tasks.create_task(self._until_renewed(), name="link: renewed")
                tasks.create_task(self._push_logs(stub, shown), name="link: logs")
                tasks.create_task(self._carry_secrets(stub, shown), name="link: secrets")
                await self._read(call)
        except* (grpc.aio.AioRpcError, StreamLostError, wire.WireError) as errors:
            lost = _first(errors)
        finally:
            self._mail.outbox.close()
            self._taken_up.clear()
            self._advance(Broke(cause="" if lost is None else _cause(lost)))
            call.cancel()
        if lost is not None:  # raised further up it would come in a group before Python 3.11.4
            raise lost

    # what the stream decides

    def _advance(self, event: StreamEvent) -> None:
        for action in advance(self._stream, event, self._clock.now()):
            self._perform(action)
        self._set_alarm(self._stream.wake_at)

    def _perform(self, action: StreamAction) -> None:
        match action:
            case SayHello():
                self._mail.outbox.send(pb.AgentMessage(hello=self._owner.hello()))
            case Beat():
                applied = self._owner.applied(action.stream)
                heartbeat = pb.Heartbeat(
                    sequence=action.sequence, plan_revision=applied, telemetry=self._owner.telemetry()
                )
                self._mail.outbox.send(pb.AgentMessage(heartbeat=heartbeat))
            case PassOn():
                self._mail.inbox.put(action.event)
            case TakeUp():
                log.info("connected to the coordinator", extra={"address": self._coordinator.address()})
                self._taken_up.set()
                self._mail.attachments.connected()
            case Leave():
                self._left.put_nowait(action.cause)
            case _:
                assert_never(action)

    def _set_alarm(self, due: float | None) -> None:
        """Have StreamTimePassed come then, or before: messages put it off, and an early alarm sets another one."""
        if self._alarm is not None:
            if due is not None and self._alarm[0] <= due:
                return
            self._alarm[1].cancel()
            self._alarm = None
        if due is not None:
            left = max(0.0, self._clock.real(due - self._clock.now()))
            self._alarm = due, asyncio.get_running_loop().call_later(left, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self._advance(StreamTimePassed())

    # what goes on while there is a stream

    async def _until_left(self) -> None:
        raise StreamLostError(await self._left.get())

    async def _until_overflow(self) -> None:
        await self._mail.outbox.overflowed.wait()
        raise StreamLostError("the coordinator does not read")

    async def _until_renewed(self) -> None:
        await self._renewed.wait()
        raise StreamLostError("connecting anew with a new certificate")

    async def _carry_secrets(self, stub: "agents_pb2_grpc.AgentServiceAsyncStub", shown: Credentials) -> None:
        """Have secrets asked for over this connection."""
        await self._taken_up.wait()
        with self._mail.secrets.connected(stub, shown):
            await asyncio.get_running_loop().create_future()

    async def _push_logs(self, stub: "agents_pb2_grpc.AgentServiceAsyncStub", shown: Credentials) -> None:
        """Carry logs; a coordinator that cannot take them now, say for want of disk, still gives orders."""
        await self._taken_up.wait()
        while True:
            cause = ""
            try:
                await self._mail.logs.run(stub, shown.metadata)
            except* (grpc.aio.AioRpcError, StreamLostError) as errors:
                cause = _cause(_first(errors))
            _stay_cancelled()
            await asyncio.sleep(LOGS_PAUSE)
            log.warning("logs cannot be carried", extra={"cause": cause})

    async def _read(self, call: Stream) -> None:
        """Take in what the coordinator says, message by message; raises StreamLostError at the end of the stream."""
        plans = wire.PlanReader()
        while True:
            message: Any = await call.read()
            if message is grpc.aio.EOF:
                raise StreamLostError(await call.details() or "the coordinator closed the stream")
            if message is None:  # gRPC's word for bytes that are no message
                log.warning("a message of the coordinator cannot be read")
                self._advance(Heard())
                continue
            match message.WhichOneof("message"):
                case "renew_soon":
                    self._coordinator.renew_soon(message.renew_soon.spread.ToTimedelta().total_seconds())
                case "attachment":
                    self._attach(message.attachment)
                case "notice":
                    self._tell_attached(message.notice)
                case "remove_volume":
                    self._remove_volume(message.remove_volume)
                case "clear_images" | "pull_image":
                    self._order_images(message)
            self._advance(_event(message, plans, self._clock))

    def _attach(self, message: attachments_pb2.AttachmentOrder) -> None:
        """Begin an attachment; whoever wants one that cannot be read hears nothing, and gives up."""
        try:
            self._mail.attachments.begin(attachment_order_from_wire(message))
        except wire.WireError as error:
            log.warning("an attachment cannot be read", extra={"cause": str(error)})

    def _remove_volume(self, message: pb.VolumeRemoval) -> None:
        """Have a volume removed; whoever gives an order that cannot be read hears nothing, and gives up."""
        try:
            self._mail.volumes.remove(volume_removal_from_wire(message))
        except wire.WireError as error:
            log.warning("an order to remove a volume cannot be read", extra={"cause": str(error)})

    def _order_images(self, message: pb.CoordinatorMessage) -> None:
        try:
            self._mail.images.order(image_order_from_wire(message))
        except wire.WireError as error:
            log.warning("an order about images cannot be read", extra={"cause": str(error)})

    def _tell_attached(self, message: attachments_pb2.NoticeForAttached) -> None:
        try:
            self._mail.attachments.tell(notice_for_attached_from_wire(message))
        except wire.WireError as error:
            log.warning("a notice for those who are attached cannot be read", extra={"cause": str(error)})


def _event(message: pb.CoordinatorMessage, plans: "wire.PlanReader", clock: Clock) -> StreamEvent:
    """What a message says. Raises WireError for a welcome that is none.

    A plan that cannot be read changes nothing, and the stream goes on: heartbeats then tell the coordinator which plan
    counts here, and it sends the whole one again.
    """
    match message.WhichOneof("message"):
        case "welcome":
            return _welcomed(message.welcome, clock)
        case "plan":
            try:
                plan = plans.take(message.plan)
            except wire.WireError as error:
                log.warning("a plan cannot be read", extra={"cause": str(error)})
                return Heard()
            return Heard() if plan is None else PlanHeard(plan=plan)
        case "heartbeat_ack":
            return Acknowledged(sequence=message.heartbeat_ack.sequence)
        case _:
            return Heard()


def _welcomed(welcome: pb.Welcome, clock: Clock) -> Welcomed:
    interval = welcome.heartbeat_interval.ToTimedelta().total_seconds()
    lease = welcome.lease.ToTimedelta().total_seconds()
    if interval <= 0 or lease <= 0:
        raise wire.WireError("Welcome", "has no heartbeat interval or no lease")
    checks.between(welcome.protocol, protocol.PROTOCOL_VERSION, protocol.PROTOCOL_VERSION, "Welcome.protocol")
    return Welcomed(interval=interval, lease=clock.shown(lease))


async def rest(channel: grpc.aio.Channel, pause: float) -> None:
    """Pause, but where nobody listens, only until somebody does: gRPC tries that with pauses of its own."""
    clock = asyncio.get_running_loop().time
    until = clock() + pause
    away, there = grpc.ChannelConnectivity.TRANSIENT_FAILURE, grpc.ChannelConnectivity.READY
    if channel.get_state() is not away:
        await asyncio.sleep(pause)
    # gRPC can wait for another state, too, but forgets a wait that was given up only when the state has changed.
    while clock() < until and channel.get_state(try_to_connect=True) is not there:  # noqa: ASYNC110 - a channel tells nobody
        await asyncio.sleep(min(LISTENS, pause))


async def _write(call: Stream, outbox: "asyncio.Queue[pb.AgentMessage]") -> None:
    """The only writer of the stream: gRPC loses messages of concurrent writers."""
    while True:
        await write(call, await outbox.get())


def _first(errors: "BaseExceptionGroup[Exception]") -> Exception:
    """The cause that says most: a status of the coordinator before a stream that is just gone."""
    flat = [error for error in errors.exceptions if not isinstance(error, StreamLostError)]
    found = flat[0] if flat else errors.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found


def _stay_cancelled() -> None:
    """Python 3.11's TaskGroup forgets that it was cancelled from outside when one of its tasks fails just then.

    And it counts a cancellation that never was when one fails while the group waits for its end; so the bodies of the
    groups here wait for one of the streams themselves.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def _cause(error: Exception) -> str:
    return f"{error.code().name}: {error.details()}" if isinstance(error, grpc.aio.AioRpcError) else str(error)
