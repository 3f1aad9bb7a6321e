"""The agents' side: their streams become events, plans go down, logs come up."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import Any

import grpc
import grpc.aio

from coordinator.clock import wall_time
from coordinator.core.answers import Refused
from coordinator.core.causes import EventCause, message_cause
from coordinator.core.cluster.cluster import HEARTBEAT_INTERVAL, Cluster
from coordinator.core.events import (
    Event,
    ExecutionsReported,
    HeartbeatReceived,
    InventoryChanged,
    NodeConnected,
    NodeDisconnected,
    PlanTooLarge,
)
from coordinator.engine import AgentStream, Engine
from coordinator.rpc.agents.deliveries import Deliveries
from coordinator.rpc.agents.downlink import Downlink, StreamEnded
from coordinator.rpc.agents.heartbeats import Heartbeats, Pulse
from coordinator.rpc.agents.log_intake import LogIntake
from coordinator.rpc.agents.send_slots import Lanes
from coordinator.rpc.callers import caller
from coordinator.rpc.refusals import refuse, translated
from coordinator.rpc.streams import send, streaming
from coordinator.service.operations import audit_entry
from coordinator.trust.audit.log import AuditLog
from coordinator.trust.authority import FleetAuthority
from coordinator.trust.caller import CallerKind
from coordinator.trust.registry import Registry
from coordinator.trust.secrets.secrets import Secrets
from coordinator.tuning.memory import Leftovers
from muster import __version__, wire
from muster.domain.errors import ConflictError, PermissionDeniedError, UnknownNameError
from muster.domain.fleet.node import Inventory, own_labels, relabelled
from muster.domain.gangs.fence import LEASE
from muster.domain.ids import ExecutionId, NodeId
from muster.domain.jobs.job import Role
from muster.domain.jobs.lifecycle import TERMINAL
from muster.rpc import protocol
from muster.rpc.v1 import agents_pb2 as pb
from muster.rpc.v1 import agents_pb2_grpc
from muster.trust.certificates import requested_key
from muster.wire import checks
from muster.wire.agents import features_from_wire

log = logging.getLogger(__name__)

_LAST_PORT = 65535
HELLO_WITHIN = 10.0
"""Seconds in which a new stream must say who it is."""
SMALL_PLAN = 64 * 1024
"""Bytes of a plan that goes out at once; larger ones, as those with rosters or files are, wait for a lane."""
LANES = 32
"""So many larger plans are written at a time. Of a gang of 5,000 each has 2 MB, unless it is compressed."""
RENEWALS = 25
"""Nodes that are asked to renew in one second when the authority changes; each takes some milliseconds of signing."""
LANE_PATIENCE = 2.0
"""Seconds after which the next one is written although an agent has not taken its own yet."""

Context = grpc.aio.ServicerContext[Any, Any]
# A streaming handler here is a coroutine that writes to its context, which gRPC allows and the stubs do not know.


class AgentService(agents_pb2_grpc.AgentServiceServicer):
    """One Connect and one PushLogs stream per agent."""

    def __init__(
        self,
        engine: Engine,
        intake: LogIntake,
        registry: Registry,
        secrets: Secrets,
        audit: AuditLog,
        authority: FleetAuthority | None,
    ) -> None:
        self._engine = engine
        self._intake = intake
        self._registry = registry
        self._secrets = secrets
        self._audit = audit
        self._deliveries = Deliveries()
        self._authority = authority
        self._plans = wire.PlanWriter()
        self._lanes = Lanes(LANES, LANE_PATIENCE)
        self._heartbeats = Heartbeats(engine)
        self._leftovers = Leftovers()
        self.closing = asyncio.Event()
        self._downs: dict[NodeId, Downlink] = {}
        """The stream to each node that is connected."""
        self._asking: asyncio.Task[None] | None = None
        if authority is not None:
            authority.on_change.append(self._ask_all_to_renew)

    @streaming
    async def Connect(self, messages: AsyncIterator[pb.AgentMessage], context: Context) -> None:  # type: ignore[override]  # the stubs know no answer by `context.write`
        """Serve one agent until its stream, or the engine's patience with it, ends."""
        with _session(self._engine) as session:
            # Nothing of Hello is kept here: of thousands of nodes it would fill memory for as long as they are there.
            connected = await self._greeted(messages, session)
            node = connected.node
            try:
                answer = await self._engine.apply(connected)
                if isinstance(answer, Refused):
                    await refuse(context, answer)
                log.info(
                    "node connected", extra={"node": node, "address": connected.address, "version": connected.version}
                )
                del connected
                await self._settle_key()
                await self._serve(node, session, messages, context)
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
                ack = await self._intake.store(chunk)
            except ValueError as error:
                about = {"peer": context.peer(), "execution": chunk.execution, "cause": str(error)}
                log.warning("log refused", extra=about)
                ack = pb.LogAck(execution=chunk.execution, unwanted=True)
            await send(context, ack)

    @translated
    async def Renew(self, request: pb.RenewRequest, context: Context) -> pb.RenewResponse:
        """The next certificate, as a rule for another key than that of the present one."""
        who = caller()
        if self._authority is None or who.node is None:
            raise PermissionDeniedError("only a node that has joined has a certificate to renew")
        now, key = wall_time(), requested_key(request.request)
        epoch, authorities = self._authority.rotation.epoch, self._authority.trusted
        answer = pb.RenewResponse(
            certificate=self._authority.certify(request.request, who.node, now),
            peer_certificate=self._authority.certify_peer(request.request, who.node, now),
            authorities=authorities,
        )
        if key != who.key:
            # The key of before counts until the new one is shown, as this answer may get lost.
            await self._registry.offer_key(
                who.node, key, epoch, audit_entry(who, "agents.renew", who.node, "ok, another key")
            )
        return answer

    @translated
    async def Secrets(self, request: pb.SecretsRequest, context: Context) -> pb.SecretsResponse:
        """The secrets of an execution that is placed on the node that asks, and not over."""
        id_, who = ExecutionId(checks.identifier(request.execution, "SecretsRequest.execution")), caller()

        def entitled(cluster: Cluster, _: datetime) -> tuple[str, Role]:
            execution = cluster.executions.get(id_)
            if execution is None:
                raise UnknownNameError(f"there is no execution {id_}")
            if execution.node is None or not who.speaks_for(execution.node):
                raise PermissionDeniedError(f"execution {id_} is not on {who.name or 'the node of a stranger'}")
            if execution.state in TERMINAL:
                raise ConflictError(f"execution {id_} is over ({execution.state}); it gets no secrets any more")
            spec = cluster.jobs[execution.job].spec
            return spec.project, spec.role_of(execution.rank)

        project, role = await self._engine.query(entitled)
        delivered = await self._secrets.delivered(project, role)
        for target in self._deliveries.targets(id_, project, [each.name for each in delivered]):
            self._audit.note(audit_entry(who, "secrets.deliver", target, f"ok, given to execution {id_}"))
        await self._audit.kept()  # nobody is given a value of which no trace is left
        return pb.SecretsResponse(secrets=map(wire.delivered_to_wire, delivered))

    async def _greeted(self, messages: AsyncIterator[pb.AgentMessage], session: AgentStream) -> NodeConnected:
        """What the agent says of its node."""
        hello = await _hello(messages)
        protocol.require_spoken(hello.protocol)
        connected = _connected(hello, session)
        _require_own(connected.node)
        inventory = self._with_labels(connected.node, connected.inventory)
        kept = self._intake.kept(connected.reports)
        return replace(connected, inventory=inventory, logs_kept=kept)

    def _with_labels(self, node: NodeId, inventory: Inventory) -> Inventory:
        """What a node says of itself never looks like what its join token or an operator says of it."""
        if caller().kind is CallerKind.LOCAL:
            return inventory  # whoever started the agents of `muster up` is the operator
        given = self._registry.labels_of(node)
        if not (inventory.labels or given):
            return inventory
        return replace(inventory, labels=relabelled(own_labels(inventory.labels), given))

    async def _serve(
        self,
        node: NodeId,
        session: AgentStream,
        messages: AsyncIterator[pb.AgentMessage],
        context: Context,
    ) -> None:
        """Write and read side by side until one of them ends, or the engine closes the session."""
        down = Downlink(context)
        try:
            await send(context, _WELCOME)
            self._downs[node] = down
            await self._ask_to_renew(node, down)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._send_plans(node, session, down), name=f"{node}: plans")
                tasks.create_task(_until_closed(session, down), name=f"{node}: closed")
                try:
                    await self._read(node, session, messages, Pulse(self._heartbeats, session, down))
                finally:
                    await down.end()
        except ExceptionGroup as group:
            group.__traceback__ = None  # its frames refer to it, and to all that the stream had
            unforeseen = group.split(StreamEnded)[1]
            if unforeseen is not None:
                raise unforeseen from None
        finally:
            if self._downs.get(node) is down:
                del self._downs[node]
            log.info("node disconnected", extra={"node": node})

    async def _settle_key(self) -> None:
        """A node that shows its new key has kept it, with the authorities that came with it."""
        who = caller()
        known = None if who.node is None else self._registry.nodes.get(who.node)
        if known is not None and known.next_key == who.key:
            entry = audit_entry(who, "agents.connect", known.name, "ok, the key of before counts no more")
            await self._registry.settle_key(known.name, who.key, entry)

    def _ask_all_to_renew(self) -> None:
        """Other authorities count than before."""
        self._asking = asyncio.get_running_loop().create_task(self._ask_each_to_renew(), name="ask nodes to renew")

    async def _ask_each_to_renew(self) -> None:
        # Each waits for its own agent to read; what ends meanwhile is asked when it is back.
        asked = [self._ask_to_renew(node, down) for node, down in self._downs.items()]
        await asyncio.gather(*asked, return_exceptions=True)

    async def _ask_to_renew(self, node: NodeId, down: Downlink) -> None:
        """Ask a node that has not learned of the last change of the authorities; others are left alone."""
        known = self._registry.nodes.get(node)
        if self._authority is None or known is None or known.epoch >= self._authority.rotation.epoch:
            return
        message = pb.RenewSoon()
        message.spread.FromMilliseconds(int(1000 * len(self._downs) / RENEWALS))
        await down.send(pb.CoordinatorMessage(renew_soon=message))

    async def _send_plans(self, node: NodeId, session: AgentStream, down: Downlink) -> None:
        """Send what the engine wants a node to do; acknowledgements overtake plans that wait for a lane."""
        while True:
            plan, faults = self._plans.sendable(await session.outbox.get())
            for (job, attempt), message in faults.items():
                log.warning(
                    "attempt too large to be told",
                    extra={"node": node, "job": job, "attempt": attempt, "cause": message},
                )
                # First, so that nobody wonders at the end of executions that this plan tells to stop.
                cause = EventCause(f"plan {plan.revision} of {node}")
                event = PlanTooLarge(node=node, job=job, attempt=attempt, message=message, cause=cause)
                await self._engine.post(event)
            parts = self._plans.parts(plan)
            first = next(parts)
            if first.size <= SMALL_PLAN and not first.message.more:
                await down.send(pb.CoordinatorMessage(plan=first.message))
                continue
            async with self._lanes.one():
                for part in chain((first,), parts):
                    await down.send(pb.CoordinatorMessage(plan=part.message))

    async def _read(
        self,
        node: NodeId,
        session: AgentStream,
        messages: AsyncIterator[pb.AgentMessage],
        pulse: Pulse,
    ) -> None:
        number = 1  # Hello was the first one
        async for message in messages:
            number += 1
            event = _event(node, session, message, number, self._intake)
            if isinstance(event, InventoryChanged):
                event = replace(event, inventory=self._with_labels(node, event.inventory))
            if isinstance(event, HeartbeatReceived):
                await pulse.take(event, message.heartbeat.sequence)
            else:
                await self._engine.post(event)
        raise StreamEnded


def _require_own(node: NodeId) -> None:
    """No node speaks for another."""
    if not caller().speaks_for(node):
        raise PermissionDeniedError(f"{caller().name or 'a stranger'} does not speak for node {node}")


@contextmanager
def _session(engine: Engine) -> Iterator[AgentStream]:
    session = engine.open_session()
    try:
        yield session
    finally:
        engine.end_session(session)


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
