"""The agents' side: their streams become events, plans go down, logs come up."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import grpc
import grpc.aio

from coordinator.core.answers import Refused
from coordinator.core.causes import EventCause, message_cause
from coordinator.core.cluster.cluster import HEARTBEAT_INTERVAL
from coordinator.core.events import (
    Event,
    ExecutionsReported,
    HeartbeatReceived,
    InventoryChanged,
    NodeConnected,
    NodeDisconnected,
)
from coordinator.engine.agent_streams import AgentStream
from coordinator.engine.engine import Engine
from coordinator.rpc.agents.attachments import AgentAttachments
from coordinator.rpc.agents.code_delivery import CodeDelivery
from coordinator.rpc.agents.data_delivery import DataDelivery
from coordinator.rpc.agents.downlink import Downlink, StreamEnded
from coordinator.rpc.agents.entitled import entitled_to
from coordinator.rpc.agents.heartbeats import Heartbeats, Pulse
from coordinator.rpc.agents.images.agreement import ImageAgreement
from coordinator.rpc.agents.input_versions import InputVersions
from coordinator.rpc.agents.kept.lines import KeptBooks, KeptOnNode, NodeKeepLines, kept_in
from coordinator.rpc.agents.log_intake import LogIntake
from coordinator.rpc.agents.plan_sender import PlanSender
from coordinator.rpc.agents.renewals import Renewals
from coordinator.rpc.agents.secret_delivery import SecretDelivery
from coordinator.rpc.callers import caller
from coordinator.rpc.refusals import refuse, translated
from coordinator.rpc.streams import send, streaming
from coordinator.service.data.swarms import Swarms
from coordinator.service.watching.newest_samples import NewestSamples
from coordinator.trust.caller import CallerKind
from coordinator.trust.joined_nodes import JoinedNodes
from coordinator.tuning.memory import Leftovers
from muster import __version__, wire
from muster.domain.attachments.request import ServedAttachment
from muster.domain.errors import PermissionDeniedError
from muster.domain.fleet.node import Inventory, own_labels, relabelled
from muster.domain.gangs.fence import LEASE
from muster.domain.ids import ExecutionId, NodeId
from muster.rpc import protocol
from muster.rpc.v1 import agents_pb2 as pb
from muster.rpc.v1 import agents_pb2_grpc
from muster.wire import checks
from muster.wire.agents import features_from_wire
from muster.wire.attachments.requests import served_attachment_from_wire
from muster.wire.data.checkpoints import checkpoint_pass_to_wire
from muster.wire.data.code import code_pass_to_wire, fetched_code_from_wire
from muster.wire.data.images import found_image_from_wire, image_pass_to_wire
from muster.wire.data.inputs import found_input_from_wire, found_input_to_wire
from muster.wire.data.outputs import outputs_pass_to_wire
from muster.wire.data.swarms import swarm_pass_to_wire

log = logging.getLogger(__name__)

_LAST_PORT = 65535
HELLO_WITHIN = 10.0
"""Seconds in which a new stream must say who it is."""

Context = grpc.aio.ServicerContext[Any, Any]
# A streaming handler here is a coroutine that writes to its context, which gRPC allows and the stubs do not know.


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenToNodes:
    """What nodes get for the executions that they run."""

    secrets: SecretDelivery
    data: DataDelivery
    code: CodeDelivery
    swarms: Swarms


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenFromNodes:
    """What nodes tell that is not the engine's."""

    logs: LogIntake
    samples: NewestSamples
    kept: KeptBooks


class AgentService(agents_pb2_grpc.AgentServiceServicer):
    """One Connect and one PushLogs stream per agent."""

    def __init__(
        self,
        engine: Engine,
        taken: TakenFromNodes,
        nodes: JoinedNodes,
        renewals: Renewals,
        given: GivenToNodes,
        attachments: AgentAttachments,
    ) -> None:
        self._engine = engine
        self._taken = taken
        self._nodes = nodes
        self._renewals = renewals
        self._given = given
        self._inputs = InputVersions(engine)
        self._images = ImageAgreement(engine)
        self._attachments = attachments
        self._plans = PlanSender(engine)
        self._heartbeats = Heartbeats(engine)
        self._leftovers = Leftovers()
        self.closing = asyncio.Event()

    @streaming
    async def Connect(self, messages: AsyncIterator[pb.AgentMessage], context: Context) -> None:  # type: ignore[override]  # the stubs know no answer by `context.write`
        """Serve one agent until its stream, or the engine's patience with it, ends."""
        with _session(self._engine) as session:
            # Nothing of Hello is kept here: of thousands of nodes it would fill memory for as long as they are there.
            connected, told = await self._greeted(messages, session)
            node = connected.node
            try:
                answer = await self._engine.apply(connected)
                if isinstance(answer, Refused):
                    await refuse(context, answer)
                log.info(
                    "node connected", extra={"node": node, "address": connected.address, "version": connected.version}
                )
                del connected
                await self._renewals.settle(caller())
                await self._serve(node, session, messages, context, told)
            finally:
                self._leftovers.one_more()
                cause = EventCause(f"{node} stream {session.number} ended")
                gone = NodeDisconnected(node=node, session=session.number, cause=cause)
                await asyncio.shield(self._engine.post(gone))

    @streaming
    async def PushLogs(self, chunks: AsyncIterator[pb.LogChunk], context: Context) -> None:  # type: ignore[override]  # the stubs know no answer by `context.write`
        """Store chunks in the order in which they come, acknowledging each."""
        async for chunk in chunks:
            _require_own(NodeId(chunk.node))
            try:
                ack = await self._taken.logs.store(chunk)
            except ValueError as error:
                about = {"peer": context.peer(), "execution": chunk.execution, "cause": str(error)}
                log.warning("log refused", extra=about)
                ack = pb.LogAck(execution=chunk.execution, unwanted=True)
            await send(context, ack)

    @translated
    async def Renew(self, request: pb.RenewRequest, context: Context) -> pb.RenewResponse:
        """The next certificate, as a rule for another key than that of the present one."""
        return await self._renewals.renewed(caller(), request.request)

    @translated
    async def Secrets(self, request: pb.SecretsRequest, context: Context) -> pb.SecretsResponse:
        """The secrets of an execution that is placed on the node that asks, and not over."""
        execution = ExecutionId(checks.identifier(request.execution, "SecretsRequest.execution"))
        delivered = await self._given.secrets.delivered(caller(), execution, for_data=request.for_data)
        return pb.SecretsResponse(secrets=map(wire.delivered_to_wire, delivered))

    @translated
    async def Data(self, request: pb.DataRequest, context: Context) -> pb.DataResponse:
        """The way to code or checkpoint of an execution on the node that asks, not over, or for its outputs."""
        execution = ExecutionId(checks.identifier(request.execution, "DataRequest.execution"))
        data, tree = self._given.data, checks.plain(request.tree, "DataRequest.tree")
        checkpoint = checks.plain(request.checkpoint, "DataRequest.checkpoint")
        if request.outputs:
            return outputs_pass_to_wire(await data.taking(caller(), execution))
        if request.saves:
            return checkpoint_pass_to_wire(await data.saving(caller(), execution))
        if checkpoint:
            return checkpoint_pass_to_wire(await data.restored(caller(), execution, checkpoint))
        if tree:
            shown = await data.shown(caller(), execution, tree)
        elif request.HasField("fetched"):
            found = fetched_code_from_wire(request.fetched)
            return code_pass_to_wire(await self._given.code.fetched(caller(), execution, found))
        else:
            return code_pass_to_wire(await self._given.code.shown(caller(), execution))
        return pb.DataResponse(depot=shown.depot, ticket=shown.ticket, allowed=shown.allowed)

    @translated
    async def Inputs(self, request: pb.InputsRequest, context: Context) -> pb.InputsResponse:
        """What the inputs of a job hold, for the node of one of its executions, which tells what it has found."""
        execution = ExecutionId(checks.identifier(request.execution, "InputsRequest.execution"))
        found = tuple(map(found_input_from_wire, request.found))
        asked = [checks.plain(each, "InputsRequest.asked") for each in request.asked]
        counts = await self._inputs.told(caller(), execution, found, asked)
        return pb.InputsResponse(found=map(found_input_to_wire, counts))

    @translated
    async def Image(self, request: pb.ImageRequest, context: Context) -> pb.ImageResponse:
        """Which image the job of an execution has, for its node, which may tell what it has found."""
        execution = ExecutionId(checks.identifier(request.execution, "ImageRequest.execution"))
        found = found_image_from_wire(request.found) if request.HasField("found") else None
        return image_pass_to_wire(await self._images.told(caller(), execution, found))

    @translated
    async def Swarm(self, request: pb.SwarmRequest, context: Context) -> pb.SwarmResponse:
        """The nodes that fetch the same, for the node of an execution that does."""
        execution = ExecutionId(checks.identifier(request.execution, "SwarmRequest.execution"))
        wanted = checks.plain(request.wanted, "SwarmRequest.wanted")
        _, role = await entitled_to(self._engine, caller(), execution, "data")
        return swarm_pass_to_wire(await self._given.swarms.of(execution, role, wanted))

    async def _greeted(
        self, messages: AsyncIterator[pb.AgentMessage], session: AgentStream
    ) -> tuple[NodeConnected, "ToldBeside"]:
        """What the agent says of its node."""
        hello = await _hello(messages)
        protocol.require_spoken(hello.protocol)
        connected = _connected(hello, session)
        _require_own(connected.node)
        inventory = self._with_labels(connected.node, connected.inventory)
        kept = self._taken.logs.kept(connected.reports)
        served = tuple(map(served_attachment_from_wire, hello.attachments))
        beside = ToldBeside(served, kept_in(hello))
        return replace(connected, inventory=inventory, logs_kept=kept), beside

    def _with_labels(self, node: NodeId, inventory: Inventory) -> Inventory:
        """What a node says of itself never looks like what its join token or an operator says of it."""
        if caller().kind is CallerKind.LOCAL:
            return inventory  # whoever started the agents of `muster up` is the operator
        given = self._nodes.labels_of(node)
        if not (inventory.labels or given):
            return inventory
        return replace(inventory, labels=relabelled(own_labels(inventory.labels), given))

    async def _serve(
        self,
        node: NodeId,
        session: AgentStream,
        messages: AsyncIterator[pb.AgentMessage],
        context: Context,
        told: "ToldBeside",
    ) -> None:
        """Write and read side by side until one of them ends, or the engine closes the session."""
        down = Downlink(context)
        lines = NodeKeepLines(self._taken.kept, node, down)
        self._attachments.coming(node)  # who hears that the agent is welcome may attach to what it has
        try:
            await send(context, _WELCOME)
            await self._renewals.connected(node, down)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._plans.send_all(node, session, down), name=f"{node}: plans")
                tasks.create_task(_until_closed(session, down), name=f"{node}: closed")
                try:
                    with self._attachments.on_stream(node, down, told.served), lines.open(told.kept):
                        await self._read(node, session, messages, Pulse(self._heartbeats, session, down), lines)
                finally:
                    await down.end()
        except ExceptionGroup as group:
            group.__traceback__ = None  # its frames refer to it, and to all that the stream had
            unforeseen = group.split(StreamEnded)[1]
            try:
                if unforeseen is not None:
                    raise unforeseen from None
            finally:
                del unforeseen  # what is raised would refer to itself
        except asyncio.CancelledError as cancelled:
            cancelled.__traceback__ = None  # as above: who is cancelled while tasks run has their group's frame in it
            raise
        finally:
            self._renewals.disconnected(node, down)
            log.info("node disconnected", extra={"node": node})

    async def _read(
        self,
        node: NodeId,
        session: AgentStream,
        messages: AsyncIterator[pb.AgentMessage],
        pulse: Pulse,
        lines: NodeKeepLines,
    ) -> None:
        number = 1  # Hello was the first one
        async for message in messages:
            number += 1
            if message.WhichOneof("message") == "attachment":
                self._attachments.reported(node, message.attachment)
                continue
            if lines.take(message):
                continue
            event = _event(node, session, message, number, self._taken.logs)
            if isinstance(event, InventoryChanged):
                event = replace(event, inventory=self._with_labels(node, event.inventory))
            if isinstance(event, HeartbeatReceived):
                self._taken.samples.put(node, message.heartbeat.telemetry)
                await pulse.take(event, message.heartbeat.sequence)
            else:
                await self._engine.post(event)
        raise StreamEnded


@dataclass(frozen=True, slots=True)
class ToldBeside:
    """What an agent says in Hello that is not the engine's."""

    served: Sequence[ServedAttachment]
    """The attachments that it serves."""
    kept: KeptOnNode
    """What its node keeps."""


def _require_own(node: NodeId) -> None:
    """No node speaks for another."""
    if not caller().speaks_for(node):
        raise PermissionDeniedError(f"{caller().name or 'a stranger'} does not speak for node {node}")


@contextmanager
def _session(engine: Engine) -> Iterator[AgentStream]:
    session = engine.streams.open()
    try:
        yield session
    finally:
        engine.streams.end(session)


async def _hello(messages: AsyncIterator[pb.AgentMessage]) -> pb.Hello:
    try:
        async with asyncio.timeout(HELLO_WITHIN):
            message = await anext(aiter(messages), None)
    except TimeoutError:
        message = None
    if message is None or message.WhichOneof("message") != "hello":
        raise wire.WireError("AgentMessage", "is not Hello, with which an agent must begin")
    return message.hello


def _connected(hello: pb.Hello, session: AgentStream) -> NodeConnected:
    if not hello.identity:
        raise wire.WireError("Hello.identity", "is empty")
    checks.require(hello, "inventory")
    for text in (*hello.inventory.labels, *hello.inventory.labels.values()):
        checks.plain(text, "Inventory.labels")
    return NodeConnected(
        node=NodeId(checks.identifier(hello.node, "Hello.node")),
        session=session.number,
        identity=hello.identity,
        version=checks.plain(hello.version, "Hello.version"),
        address=checks.address(hello.address, "Hello.address"),
        inventory=wire.inventory_from_wire(hello.inventory),
        reports=tuple(wire.report_from_wire(report) for report in hello.executions),
        peer_port=checks.between(hello.peer_port, 0, _LAST_PORT, "Hello.peer_port"),
        features=features_from_wire(tuple(hello.features)),
        opened=hello.opened,
        cause=message_cause(hello.node, session.number, 1),
    )


def _event(node: NodeId, session: AgentStream, message: pb.AgentMessage, number: int, intake: LogIntake) -> Event:
    """What a message tells; `number` is its place on the stream."""
    match message.WhichOneof("message"):
        case "heartbeat":
            revision = message.heartbeat.plan_revision
            return HeartbeatReceived(node=node, session=session.number, plan_revision=revision)
        case "inventory":
            inventory = wire.inventory_from_wire(message.inventory)
            cause = message_cause(node, session.number, number)
            return InventoryChanged(node=node, session=session.number, inventory=inventory, cause=cause)
        case "reports":
            reports = tuple(wire.report_from_wire(report) for report in message.reports.reports)
            return ExecutionsReported(
                node=node,
                session=session.number,
                reports=reports,
                logs_kept=intake.kept(reports),
                cause=message_cause(node, session.number, number),
            )
        case other:
            raise wire.WireError("AgentMessage", f"{other or 'nothing'} is not expected after Hello")


def _welcome() -> pb.CoordinatorMessage:
    welcome = pb.Welcome(version=__version__, protocol=protocol.PROTOCOL_VERSION)
    welcome.heartbeat_interval.FromTimedelta(HEARTBEAT_INTERVAL)
    welcome.lease.FromTimedelta(LEASE)
    return pb.CoordinatorMessage(welcome=welcome)


_WELCOME = _welcome()


async def _until_closed(session: AgentStream, down: Downlink) -> None:
    await session.closed.wait()
    await down.end()
    raise StreamEnded
