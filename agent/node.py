"""One node: its inventory, its loop, its link and its logs, put together and run."""

import asyncio
import logging
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from agent.core.events import GpuFaulted, PlanReceived
from agent.executions.ports import PortLedger
from agent.executions.trees import make_directories
from agent.fencing.clock import Clock
from agent.fencing.guard import FenceGuard, FenceSite
from agent.fencing.killer import Killer
from agent.fencing.peer_port import PeerPort
from agent.fencing.peers import Shown
from agent.gpus.source import GpuSource
from agent.inventory.hardware import interface_of
from agent.inventory.inventory import Declared, InventoryReader, changed
from agent.link import Coordinator, Link
from agent.logs.file import DEFAULT_LIMIT
from agent.logs.push import LogPusher
from agent.loop.loop import Loop
from agent.loop.reporting import Reporting
from agent.runtimes.runtime import Runtime
from agent.secrets.store import ExecutionSecrets
from muster import __version__, wire
from muster.domain.errors import MusterError, UnavailableError
from muster.domain.fleet.features import ALL_FEATURES
from muster.domain.fleet.node import Inventory, RuntimeOffer
from muster.domain.gangs.plan import Plan
from muster.domain.ids import NodeId
from muster.domain.jobs.job import RuntimeKind
from muster.rpc import protocol
from muster.rpc.channel import NOTHING
from muster.rpc.v1 import agents_pb2 as pb

log = logging.getLogger(__name__)

REFRESH = timedelta(seconds=30)
"""How often a node looks at itself; GPU faults and runtimes that come or go are seen at once or then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeConfig:
    """What is chosen about one node."""

    name: NodeId
    state: Path
    address: str
    """Where peers reach its executions."""
    coordinator: Coordinator
    declared: Declared
    shown_to_peers: Shown = lambda: NOTHING
    """With what it asks other nodes and answers them; nothing: in plain text, and only on this machine."""
    log_limit: int = DEFAULT_LIMIT
    """Bytes that are kept of what one execution prints."""
    docker_socket: Path | None = None
    keeper: Killer = field(default_factory=Killer)
    """One for all nodes of a program."""
    secrets: ExecutionSecrets = field(default_factory=ExecutionSecrets)
    clock: Clock = field(default_factory=Clock)


class NodeAgent:
    """Everything of one node."""

    def __init__(
        self,
        config: NodeConfig,
        runtimes: Mapping[RuntimeKind, Runtime],
        source: GpuSource,
        ports: PortLedger,
    ) -> None:
        self.name = config.name
        self._address = config.address
        self._identity = identity(config.state)
        self._runtimes = runtimes
        self._source = source
        self._reader = InventoryReader(source, config.state, config.declared)
        self._guard = FenceGuard(_site(config), config.keeper, config.clock, config.shown_to_peers)
        self._peer_port = PeerPort(config.state, ports, config.shown_to_peers)
        self._loop = Loop(
            guard=self._guard,
            address=config.address,
            interface=interface_of(config.address),
            runtimes=runtimes,
            ports=ports,
        )
        self._loop.log_limit = config.log_limit
        self._loop.catch_up_on_faults = source.catch_up
        self._logs = LogPusher(config.name, self._loop.complete_log)
        self._link = Link(config.coordinator, self, self._logs)
        self._loop.tell = Reporting(self._link.send).tell
        self._loop.secrets = config.secrets
        config.secrets.ask = self._link.secrets.ask
        self._streams = 0
        """How many were opened; plans come on the last one."""
        self._inventory: Inventory
        self._away: set[RuntimeKind] = set()
        """Runtimes that did not answer when the agent started; what they may have left over is not cleared yet."""
        self._faulted = asyncio.Event()
        """Set when a GPU may not be what the inventory says."""
        self.ready = asyncio.Event()
        """Set once it runs, connected or not."""

    async def run(self) -> None:
        """Be the node until cancelled."""
        self._inventory = await self._look()
        self._away = {offer.kind for offer in self._inventory.runtimes if offer.problem is not None}
        await self._loop.recover(self._away)
        await self._guard.begin()
        async with self._peer_port.answering(self.name, self._guard, self._address), asyncio.TaskGroup() as tasks:
            tasks.create_task(self._loop.run(self._logs), name=f"{self.name}: loop")
            tasks.create_task(self._guard.run(self._loop.take), name=f"{self.name}: guard")
            tasks.create_task(self._link.run(), name=f"{self.name}: link")
            tasks.create_task(self._refresh(), name=f"{self.name}: inventory")
            tasks.create_task(self._hear_faults(), name=f"{self.name}: GPU faults")
            self.ready.set()

    async def close(self, *, stop: bool) -> None:
        """Let go of everything, after `run` has ended; executions are stopped, or go on until the next agent."""
        await self._loop.shut_down(stop=stop)
        await self._guard.close(stopped=stop)
        for runtime in self._runtimes.values():
            await runtime.close()
        self._loop.close()
        await self._source.close()

    @property
    def connected(self) -> bool:
        """Whether it is welcome at the coordinator now."""
        return self._link.connected

    def reconnect(self) -> None:
        """Speak to the coordinator over a new stream, with new credentials; what runs goes on."""
        self._link.reconnect()

    # what its link asks and says

    def hello(self) -> pb.Hello:
        """The whole truth about the node, at the head of a stream."""
        self._streams += 1
        return pb.Hello(
            node=self.name,
            identity=self._identity,
            version=__version__,
            address=self._address,
            inventory=wire.inventory_to_wire(self._inventory),
            executions=[wire.report_to_wire(self._guard.told(report)) for report in self._loop.ledger.reports()],
            opened=time.time_ns(),
            peer_port=self._peer_port.number,
            features=sorted(ALL_FEATURES),
            protocol=protocol.VERSION,
        )

    def receive(self, plan: Plan) -> None:
        """Take what the coordinator wants."""
        self._loop.take(PlanReceived(plan=plan, stream=self._streams))

    def revision(self) -> int:
        """Of the last plan on this stream that was applied."""
        return self._loop.ledger.applied(self._streams)

    @property
    def clock(self) -> Clock:
        """That of fencing."""
        return self._guard.clock

    def contact(self, sent_at: float) -> None:
        """The coordinator has acknowledged what was sent then."""
        self._guard.contact(sent_at)

    def disconnected(self) -> None:
        """The stream has ended."""
        self._guard.disconnected()

    # what it does besides

    async def _refresh(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(REFRESH.total_seconds()):
                    await self._faulted.wait()
            self._faulted.clear()
            await self._look_again()

    async def _hear_faults(self) -> None:
        async for fault in self._source.faults():
            log.warning("GPU fault", extra={"node": self.name, "gpu": fault.uuid, "fault": fault.message})
            index = next((gpu.index for gpu in self._inventory.gpus if gpu.uuid == fault.uuid), None)
            self._loop.take(GpuFaulted(gpu=fault.uuid, index=index, message=fault.message, own=fault.own))
            self._faulted.set()

    async def _look_again(self) -> None:
        try:
            inventory = await self._look()
        except UnavailableError as error:
            log.warning("cannot look at the node", extra={"node": self.name, "cause": str(error)})
            return
        for kind in [offer.kind for offer in inventory.runtimes if offer.problem is None and offer.kind in self._away]:
            await self._loop.clear_leftovers(kind)
            self._away.discard(kind)
        if changed(self._inventory, inventory):
            self._inventory = inventory
            self._link.send(pb.AgentMessage(inventory=wire.inventory_to_wire(inventory)))

    async def _look(self) -> Inventory:
        offers: list[RuntimeOffer] = [await runtime.offer() for runtime in self._runtimes.values()]
        return await self._reader.read(offers, self._loop.ledger.assigned())


def _site(config: NodeConfig) -> FenceSite:
    return FenceSite(
        node=config.name,
        state=config.state,
        rooms=config.state / "executions",
        outputs=config.state / "outputs",
        docker_socket=config.docker_socket,
    )


def identity(state: Path) -> str:
    """The node's identity: made on its first start and kept. Raises MusterError for one that is damaged."""
    make_directories(state)
    path = state / "identity"
    if not path.exists():
        fresh = path.with_suffix(".new")
        fresh.write_text(f"{uuid.uuid4()}\n")
        fresh.chmod(0o600)
        fresh.replace(path)
    try:
        return str(uuid.UUID(path.read_text(encoding="ascii").strip()))
    except (OSError, ValueError) as error:
        raise MusterError(
            f"{path} is damaged: it must have the UUID by which this node knows its containers. Put back a copy, "
            "or remove the file once no container of this node runs, and the node makes another one"
        ) from error
