"""One node: its inventory, its loop, its link and its logs, put together and run."""

import asyncio
import logging
import shutil
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path

from agent.attach.for_peers import CommandsForPeers
from agent.attach.gang_commands import CommandsInGangs
from agent.attach.local_commands import LocalCommands
from agent.attach.relayed.attachments import RelayedAttachments
from agent.attach.relayed.relay import RelayConnection
from agent.code.store import CODE_CACHE, CodeStore
from agent.core.events import GpuFaulted, LogCompleted
from agent.core.step import AgentState
from agent.data.checkpoints.store import KEPT_PARTS, CheckpointStore
from agent.data.outputs import OutputStore
from agent.data.store import CacheSettings, InputStore
from agent.executions.directories import ExecutionDirectories
from agent.executions.held_resources import HeldResources
from agent.executions.ports import PortLedger
from agent.executions.trees import make_directories
from agent.executions.volumes.node_volumes import NodeVolumes
from agent.fencing.clock import Clock
from agent.fencing.guard import FenceGuard, FenceSite
from agent.fencing.killer import Killer
from agent.fencing.peer_port import PeerPort
from agent.fencing.peer_server import GivenToPeers
from agent.gpus.source import GpuSource
from agent.identity.peers import Shown
from agent.inventory.hardware import interface_of
from agent.inventory.inventory import Declared, InventoryReader, changed
from agent.kept_images import KeptImagesHere
from agent.kept_volumes import KeptVolumesHere
from agent.link import Coordinator, Link, Mail
from agent.logs.file import DEFAULT_LIMIT
from agent.logs.push import LogPusher
from agent.loop.attachments import AttachmentsHere
from agent.loop.gangs import GangsHere
from agent.loop.looks import counts_of_running, use_of_gpus
from agent.loop.loop import Loop
from agent.loop.recovery import clear_leftovers
from agent.loop.workbench import Workbench
from agent.mailbox import Inbox, Outbox
from agent.runtimes.runtime import Runtime
from agent.secrets.calls import SecretCalls
from agent.secrets.store import ExecutionSecrets
from agent.swarm.serving import PiecesForPeers
from agent.telemetry.sampler import Sampler
from muster import __version__, wire
from muster.domain.attachments.request import ServedAttachment
from muster.domain.data.kept.image import ToldImage
from muster.domain.data.volume import KeptVolume
from muster.domain.errors import MusterError, UnavailableError
from muster.domain.fleet.features import ALL_FEATURES, ATTACH, GIT_CODE, GIT_LFS, GIT_SUBMODULES, MAIN_PROGRAM, SWARM
from muster.domain.fleet.node import Inventory
from muster.domain.ids import ExecutionId, GpuUuid, NodeId
from muster.domain.jobs.job import RuntimeKind
from muster.domain.telemetry.sample import GpuUse, Sample
from muster.rpc import protocol
from muster.rpc.channel import NOTHING
from muster.rpc.v1 import agents_pb2 as pb
from muster.wire.attachments.requests import attachment_report_to_wire, served_attachment_to_wire
from muster.wire.data.pulled_images import told_image_to_wire
from muster.wire.data.volumes import kept_volume_to_wire
from muster.wire.telemetry.samples import sample_to_wire

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
    attach: bool = True
    """Whether people and programs may attach to what runs there."""
    shown_to_peers: Shown = lambda: NOTHING
    """Certificates for asking other nodes and for answering them; nothing: plain text, and only on this machine."""
    log_limit: int = DEFAULT_LIMIT
    """Bytes that are kept of what one execution prints."""
    docker_socket: Path | None = None
    volumes: NodeVolumes = field(default_factory=NodeVolumes)
    """Shared with the runtimes."""
    killer: Killer = field(default_factory=Killer)
    """One for all nodes of a program."""
    secret_calls: SecretCalls = field(default_factory=SecretCalls)
    """Ask for secrets while there is a connection."""
    secrets: ExecutionSecrets | None = None
    """Shared with the runtimes; None: one of its own."""
    code: CodeStore | None = None
    outputs: OutputStore = field(default_factory=OutputStore)
    """The same."""
    checkpoints: CheckpointStore | None = None
    """None: nobody stores any."""
    inputs: InputStore | None = None
    """None: nobody fetches any."""
    pieces: PiecesForPeers | None = None
    """None: it neither gives pieces to other nodes nor takes any from them."""
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
        self.ready = asyncio.Event()
        """Set once it runs, connected or not."""
        self._guard = FenceGuard(_site(config), config.killer, config.clock, config.shown_to_peers)
        self._peer_port = PeerPort(config.state, ports, config.shown_to_peers)
        self._state = AgentState(config.clock.now())
        outbox, secrets = Outbox(), config.secrets or ExecutionSecrets(ask=config.secret_calls.ask)
        inbox = Inbox()
        logs = LogPusher(config.name, self._complete_log)
        self._bench = Workbench(
            inbox=inbox,
            guard=self._guard,
            directories=ExecutionDirectories(self._guard.site.executions, self._guard.site.outputs, config.volumes),
            held=HeldResources(ports, self._state.ledger.gpus),
            runtimes=runtimes,
            logs=logs,
            address=config.address,
            interface=interface_of(config.address),
            secrets=secrets,
            outputs=config.outputs,
            checkpoints=config.checkpoints or CheckpointStore(config.state / KEPT_PARTS),
            code=config.code or CodeStore(config.state / CODE_CACHE),
            inputs=config.inputs or _no_inputs(config),
            log_limit=config.log_limit,
            catch_up_on_faults=source.catch_up,
            gpu_use=source.use,
            gpu_processes=source.processes,
        )
        gangs = GangsHere(self._state, self._bench)
        commands = LocalCommands(gangs)
        self._for_peers = GivenToPeers(commands=CommandsForPeers(config.name, gangs, commands), pieces=config.pieces)
        asked_here = CommandsInGangs(config.name, gangs, commands, config.shown_to_peers)
        self._loop = Loop(self._bench, outbox, self._state, asked_here)
        self._watch = InventoryWatch(config, source, self._bench, outbox, self._state.ledger.assigned)
        attachments = RelayedAttachments(
            AttachmentsHere(self._state, self._loop, open_=config.attach),
            RelayConnection(config.coordinator.address, config.coordinator.credentials),
            lambda report: outbox.send(pb.AgentMessage(attachment=attachment_report_to_wire(report))),
            self._bench.usage,
            self._bench.launches,
        )
        volumes = KeptVolumesHere(config.volumes, self._bench.directories.path, outbox)
        images = KeptImagesHere(runtimes.values(), outbox)
        mail = Mail(
            inbox=inbox,
            outbox=outbox,
            logs=logs,
            secrets=config.secret_calls,
            attachments=attachments,
            volumes=volumes,
            images=images,
        )
        self._attached = (attachments, commands)
        """What works in executions for others, and ends before these do."""
        sampler = Sampler(self._gpu_use, partial(counts_of_running, self._bench, self._state))
        self._tellers = {"samples": sampler.run, "kept volumes": volumes.run, "images": images.run}
        """What tells of the node beside its reports."""
        told = Told(attachments.served, sampler.take, volumes.all, images.all)
        owner = Introduction(config, self._watch, self._peer_port, self._state, told)
        self._link = Link(config.coordinator, owner, mail, config.clock)

    async def run(self) -> None:
        """Be the node until cancelled."""
        await self._watch.begin()
        await self._loop.recover(self._watch.away)
        async with (
            self._peer_port.answering(self.name, self._loop, self._bench.address, self._for_peers),
            asyncio.TaskGroup() as tasks,
        ):
            tasks.create_task(self._loop.run(), name=f"{self.name}: loop")
            tasks.create_task(self._guard.run(), name=f"{self.name}: guard")
            tasks.create_task(self._link.run(), name=f"{self.name}: link")
            tasks.create_task(self._watch.refresh(), name=f"{self.name}: inventory")
            tasks.create_task(self._watch.hear_faults(), name=f"{self.name}: GPU faults")
            for what, tell in self._tellers.items():
                tasks.create_task(tell(), name=f"{self.name}: {what}")
            self.ready.set()

    async def _gpu_use(self) -> Mapping[GpuUuid, GpuUse]:
        """What is seen of this node's own GPUs."""
        own = [gpu.uuid for gpu in self._watch.inventory.gpus]
        return await use_of_gpus(self._bench, self._state, own)

    async def close(self, *, stop: bool) -> None:
        """Let go of everything, after `run` has ended; executions are stopped, or go on until the next agent."""
        for each in self._attached:
            await each.close()
        await self._loop.shut_down(stop=stop)
        await self._guard.close(stopped=stop)
        for runtime in self._bench.runtimes.values():
            await runtime.close()
        self._loop.close()
        await self._watch.close()

    @property
    def connected(self) -> bool:
        """Whether it is welcome at the coordinator now."""
        return self._link.connected

    def reconnect(self) -> None:
        """Speak to the coordinator over a new stream, with new credentials; what runs goes on."""
        self._link.reconnect()

    def _complete_log(self, execution: ExecutionId) -> None:
        self._bench.inbox.put(LogCompleted(execution=execution))


@dataclass(frozen=True, slots=True)
class Told:
    """What others know of what the node does at the moment."""

    served: Callable[[], Iterable[ServedAttachment]]
    sample: Callable[[], Sample | None]
    kept_volumes: Callable[[], Iterable[KeptVolume]]
    pulled_images: Callable[[], Iterable[ToldImage]]


class Introduction:
    """What a node says of itself at the head of each stream."""

    def __init__(
        self,
        config: NodeConfig,
        watch: "InventoryWatch",
        peer_port: PeerPort,
        state: AgentState,
        told: Told,
    ) -> None:
        self._config = config
        self._identity = identity(config.state)
        self._watch = watch
        self._peer_port = peer_port
        self._state = state
        self._told = told

    def hello(self) -> pb.Hello:
        """The whole truth about the node."""
        reports = self._state.reports(self._config.clock.now())
        return pb.Hello(
            node=self._config.name,
            identity=self._identity,
            version=__version__,
            address=self._config.address,
            inventory=wire.inventory_to_wire(self._watch.inventory),
            executions=[wire.report_to_wire(report) for report in reports],
            opened=time.time_ns(),
            peer_port=self._peer_port.number,
            features=sorted(ALL_FEATURES - self._lacking()),
            attachments=map(served_attachment_to_wire, self._told.served()),
            kept_volumes=map(kept_volume_to_wire, self._told.kept_volumes()),
            pulled_images=map(told_image_to_wire, self._told.pulled_images()),
            protocol=protocol.PROTOCOL_VERSION,
        )

    def _lacking(self) -> frozenset[str]:
        """Features of this version that this node does not have."""
        lacking = frozenset[str]() if self._config.attach else frozenset({ATTACH, MAIN_PROGRAM})
        lacking |= frozenset() if self._config.pieces else {SWARM}
        return lacking if shutil.which("git") else lacking | {GIT_CODE, GIT_LFS, GIT_SUBMODULES}

    def applied(self, stream: int) -> int:
        """Revision of the last plan on a stream that was applied; 0: none was."""
        return self._state.ledger.applied(stream)

    def telemetry(self) -> bytes:
        """What was used since this was asked for before; empty: nothing is known."""
        sample = self._told.sample()
        return b"" if sample is None else sample_to_wire(sample).SerializeToString()


class InventoryWatch:
    """Looks at what the node has, again and again, and tells the coordinator what has changed."""

    def __init__(
        self,
        config: NodeConfig,
        source: GpuSource,
        bench: Workbench,
        outbox: Outbox,
        assigned: Callable[[], frozenset[GpuUuid]],
    ) -> None:
        """Know nothing yet; `assigned` tells which GPUs belong to an execution."""
        self._node = config.name
        self._source = source
        self._reader = InventoryReader(source, config.state, config.declared)
        self._bench = bench
        self._outbox = outbox
        self._assigned = assigned
        self._inventory: Inventory | None = None
        self._faulted = asyncio.Event()
        """Set when a GPU may not be what the inventory says."""
        self.away: set[RuntimeKind] = set()
        """Runtimes that did not answer when the agent started; what they may have left over is not cleared yet."""

    @property
    def inventory(self) -> Inventory:
        """What the coordinator was told last."""
        assert self._inventory is not None
        return self._inventory

    async def begin(self) -> None:
        """Look for the first time; raises UnavailableError where the node cannot be looked at."""
        self._inventory = await self._look()
        self.away = {offer.kind for offer in self._inventory.runtimes if offer.problem is not None}

    async def refresh(self) -> None:
        """Look again from time to time, and whenever a GPU has a fault."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(REFRESH.total_seconds()):
                    await self._faulted.wait()
            self._faulted.clear()
            await self._look_again()

    async def hear_faults(self) -> None:
        """Pass faults of GPUs on to the core as they come."""
        async for fault in self._source.faults():
            log.warning("GPU fault", extra={"node": self._node, "gpu": fault.uuid, "fault": fault.message})
            index = next((gpu.index for gpu in self.inventory.gpus if gpu.uuid == fault.uuid), None)
            self._bench.inbox.put(GpuFaulted(gpu=fault.uuid, index=index, message=fault.message, own=fault.own))
            self._faulted.set()

    async def close(self) -> None:
        """Let go of the source of GPUs."""
        await self._source.close()

    async def _look_again(self) -> None:
        try:
            inventory = await self._look()
        except UnavailableError as error:
            log.warning("cannot look at the node", extra={"node": self._node, "cause": str(error)})
            return
        for kind in [offer.kind for offer in inventory.runtimes if offer.problem is None and offer.kind in self.away]:
            await clear_leftovers(self._bench, kind)
            self.away.discard(kind)
        if changed(self.inventory, inventory):
            self._inventory = inventory
            self._outbox.send(pb.AgentMessage(inventory=wire.inventory_to_wire(inventory)))

    async def _look(self) -> Inventory:
        return await self._reader.read([await each.offer() for each in self._bench.runtimes.values()], self._assigned)


def _no_inputs(config: NodeConfig) -> InputStore:
    return InputStore(CacheSettings(directory=config.state / CODE_CACHE, executions=config.state / "executions"))


def _site(config: NodeConfig) -> FenceSite:
    return FenceSite(
        node=config.name,
        state=config.state,
        executions=config.state / "executions",
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
