"""The agent's connection to the coordinator: one stream for orders and reports, opened again whenever it breaks."""

import asyncio
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

import grpc
import grpc.aio

from agent.fencing.clock import Clock
from agent.logs.push import LogPusher, StreamLostError, write
from agent.secrets.calls import SecretCalls
from muster import wire
from muster.domain.gangs.plan import Plan
from muster.rpc import protocol
from muster.rpc.channel import AGENT_CHANNEL_OPTIONS, Credentials, open_channel
from muster.rpc.v1 import agents_pb2 as pb
from muster.rpc.v1 import agents_pb2_grpc
from muster.wire import checks

log = logging.getLogger(__name__)

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0
PAUSE_GROWTH = 1.5
"""Seconds between attempts to connect, and how they grow, with jitter, so that a fleet does not come back in one wave.

They end early once somebody listens again: a coordinator that restarts finds its agents within a second.
"""
LISTENS = 0.05
"""Seconds between looks at whether somebody does."""
LASTED = 1.0
"""Seconds after which a stream was a good one, and pauses begin anew."""
LOGS_PAUSE = 1.0
"""Seconds between attempts to carry logs while orders come through."""
OUTBOX = 1000
"""Most messages that wait for a coordinator that does not read; then the stream is opened anew."""

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

    def receive(self, plan: Plan) -> None:
        """Take what the coordinator wants."""
        ...

    def revision(self) -> int:
        """Of the last plan that was applied."""
        ...

    @property
    def clock(self) -> Clock:
        """That of `contact`."""
        ...

    def contact(self, sent_at: float) -> None:
        """The coordinator has acknowledged what was sent then. Nothing else counts as contact."""

    def disconnected(self) -> None:
        """The stream has ended."""
        ...


class Link:
    """Keeps a stream to the coordinator open as long as it runs."""

    def __init__(self, coordinator: Coordinator, owner: Owner, logs: LogPusher) -> None:
        self._coordinator = coordinator
        self._owner = owner
        self._logs = logs
        self._beats: dict[int, float] = {}
        """When each heartbeat was sent that is not acknowledged."""
        self._outbox: asyncio.Queue[pb.AgentMessage] | None = None
        self._choked = asyncio.Event()
        self._renewed = asyncio.Event()
        self.secrets = SecretCalls()
        """Asks for secrets while there is a connection."""
        self._heard = 0.0
        """When the coordinator last said anything, by the event loop's clock."""
        self.connected = False
        """Whether the coordinator has said Welcome on a stream that is still open."""

    def reconnect(self) -> None:
        """Open the stream anew, with the address and the credentials that there are now; what runs goes on."""
        self._renewed.set()

    def send(self, message: pb.AgentMessage) -> None:
        """Send a message if there is a stream; if there is none, the next Hello tells everything."""
        if self._outbox is None:
            return
        try:
            self._outbox.put_nowait(message)
        except asyncio.QueueFull:
            self._outbox = None
            self._choked.set()

    async def run(self) -> None:
        """Connect, and connect again, until cancelled."""
        while True:
            await self._show(self._coordinator.address(), self._coordinator.credentials())

    async def _show(self, address: str, shown: Credentials) -> None:
        """Connect, and connect again, until there are another address or other credentials."""
        pause, clock = FIRST_PAUSE, asyncio.get_running_loop().time
        async with open_channel(address, shown, AGENT_CHANNEL_OPTIONS) as channel:
            stub: agents_pb2_grpc.AgentServiceAsyncStub = agents_pb2_grpc.AgentServiceStub(channel)
            while (address, shown) == (self._coordinator.address(), self._coordinator.credentials()):
                began = clock()
                try:
                    await self._connected(stub, shown)
                except (grpc.aio.AioRpcError, StreamLostError, wire.WireError) as error:
                    log.warning("no connection to the coordinator", extra={"cause": _cause(error)})
                _stay_cancelled()
                # A coordinator that takes streams only to drop them must not be asked ten times a second.
                lasted = clock() - began > LASTED
                pause = FIRST_PAUSE if lasted else min(pause * PAUSE_GROWTH, LONGEST_PAUSE)
                await rest(channel, pause * random.uniform(0.5, 1.5))  # noqa: S311 - jitter, not a secret

    async def _connected(self, stub: "agents_pb2_grpc.AgentServiceAsyncStub", shown: Credentials) -> None:
        """One stream from Hello to its end."""
        call = stub.Connect(metadata=shown.metadata)
        self._choked.clear()
        self._renewed.clear()
        self._beats.clear()
        lost: Exception | None = None
        try:
            outbox = self._outbox = asyncio.Queue(OUTBOX)
            sent_at = self._owner.clock.now()
            # Nothing is awaited between Hello's content and its place in the queue, so no later report can overtake it.
            outbox.put_nowait(pb.AgentMessage(hello=self._owner.hello()))
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(_write(call, outbox), name="link: write")
                tasks.create_task(self._until_choked(), name="link: choked")
                tasks.create_task(self._until_renewed(), name="link: renewed")
                welcome = await _welcome(call, self._coordinator.patience)
                self._owner.contact(sent_at)
                self.connected = True
                log.info("connected to the coordinator", extra={"address": self._coordinator.address()})
                interval, lease = welcome.heartbeat_interval.ToTimedelta(), welcome.lease.ToTimedelta()
                tasks.create_task(self._beat(interval), name="link: heartbeats")
                tasks.create_task(self._push_logs(stub, shown), name="link: logs")
                tasks.create_task(self._until_silent(lease.total_seconds()), name="link: silence")
                with self.secrets.connected(stub, shown):
                    await self._read(call)
        except* (grpc.aio.AioRpcError, StreamLostError, wire.WireError) as errors:
            lost = _first(errors)
        finally:
            self._outbox = None
            self.connected = False
            self._owner.disconnected()
            call.cancel()
        if lost is not None:  # raised further up it would come in a group before Python 3.11.4
            raise lost

    async def _until_choked(self) -> None:
        await self._choked.wait()
        raise StreamLostError("the coordinator does not read")

    async def _until_renewed(self) -> None:
        await self._renewed.wait()
        raise StreamLostError("connecting anew with a new certificate")

    async def _push_logs(self, stub: "agents_pb2_grpc.AgentServiceAsyncStub", shown: Credentials) -> None:
        """Carry logs; a coordinator that cannot take them now, say for want of disk, still gives orders."""
        while True:
            cause = ""
            try:
                await self._logs.run(stub, shown.metadata)
            except* (grpc.aio.AioRpcError, StreamLostError) as errors:
                cause = _cause(_first(errors))
            _stay_cancelled()
            await asyncio.sleep(LOGS_PAUSE)
            log.warning("logs cannot be carried", extra={"cause": cause})

    async def _until_silent(self, lease: float) -> None:
        """A coordinator that does not even answer heartbeats for a lease is not there."""
        clock = asyncio.get_running_loop().time
        self._heard = clock()
        while (left := self._heard + lease - clock()) > 0:  # noqa: ASYNC110 - nothing tells of silence
            await asyncio.sleep(left)
        raise StreamLostError(f"silent for {lease:g} s")

    async def _read(self, call: Stream) -> None:
        """Take plans. One that cannot be read changes nothing, and the stream goes on.

        Heartbeats then tell the coordinator which plan counts here, and it sends the whole one again.
        """
        clock, plans = asyncio.get_running_loop().time, wire.PlanReader()
        while True:
            message: Any = await call.read()
            self._heard = clock()
            if message is grpc.aio.EOF:
                raise StreamLostError(await call.details() or "the coordinator closed the stream")
            if message is None:  # gRPC's word for bytes that are no message
                log.warning("a message of the coordinator cannot be read")
                continue
            match message.WhichOneof("message"):
                case "plan":
                    self._take(plans, message.plan)
                case "heartbeat_ack":
                    self._acknowledged(message.heartbeat_ack.sequence)
                case "renew_soon":
                    self._coordinator.renew_soon(message.renew_soon.spread.ToTimedelta().total_seconds())

    def _take(self, plans: "wire.PlanReader", message: pb.Plan) -> None:
        try:
            plan = plans.take(message)
        except wire.WireError as error:
            log.warning("a plan cannot be read", extra={"cause": str(error)})
            return
        if plan is not None:
            self._owner.receive(plan)

    def _acknowledged(self, sequence: int) -> None:
        """A heartbeat has arrived; acknowledgements of unknown ones say nothing."""
        sent_at = self._beats.get(sequence)
        if sent_at is not None:
            self._owner.contact(sent_at)
            self._beats = {later: at for later, at in self._beats.items() if later > sequence}

    async def _beat(self, interval: timedelta) -> None:
        sequence = 0
        while True:
            await asyncio.sleep(self._owner.clock.real(interval.total_seconds()))
            sequence += 1
            self._beats[sequence] = self._owner.clock.now()
            heartbeat = pb.Heartbeat(sequence=sequence, plan_revision=self._owner.revision())
            self.send(pb.AgentMessage(heartbeat=heartbeat))


async def rest(channel: grpc.aio.Channel, pause: float) -> None:
    """Pause, but where nobody listens, only until somebody does: gRPC tries that with pauses of its own."""
    clock = asyncio.get_running_loop().time
    until = clock() + pause
    away, there = grpc.ChannelConnectivity.TRANSIENT_FAILURE, grpc.ChannelConnectivity.READY
    if channel.get_state() is not away:
        await asyncio.sleep(pause)
    # gRPC can wait for another state, too, but forgets a wait that was given up only when the state has changed.
    while clock() < until and channel.get_state(try_to_connect=True) is not there:  # noqa: ASYNC110
        await asyncio.sleep(min(LISTENS, pause))


async def _write(call: Stream, outbox: "asyncio.Queue[pb.AgentMessage]") -> None:
    """The only writer of the stream: gRPC loses messages of concurrent writers."""
    while True:
        await write(call, await outbox.get())


async def _welcome(call: Stream, patience: float) -> pb.Welcome:
    try:
        async with asyncio.timeout(patience):
            message: Any = await call.read()
    except TimeoutError:
        raise StreamLostError(f"no answer to Hello within {patience:g} s") from None
    if message is grpc.aio.EOF:
        raise StreamLostError(await call.details() or "the coordinator closed the stream")
    welcome: pb.Welcome = message.welcome
    if welcome.heartbeat_interval.ToTimedelta() <= timedelta(0) or welcome.lease.ToTimedelta() <= timedelta(0):
        raise wire.WireError("Welcome", "is not the first answer, or has no heartbeat interval or lease")
    checks.between(welcome.protocol, protocol.VERSION, protocol.VERSION, "Welcome.protocol")
    return welcome


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
