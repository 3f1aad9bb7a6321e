"""The agent's composition root: settings, runtimes, ports, one node or several; a clean end on SIGTERM or Ctrl-C."""

import asyncio
import faulthandler
import logging
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.code.questions import CodeQuestions
from agent.code.store import CODE_CACHE, CodeStore
from agent.data.checkpoints.store import KEPT_PARTS, CheckpointQuestions, CheckpointStore
from agent.data.layers.site import LayerSite
from agent.data.outputs import OutputStore
from agent.data.store import INPUT_CACHE, LAYER_CACHE, CacheSettings, InputQuestions, InputStore
from agent.executions.ports import PortLedger
from agent.executions.volumes.kept import KeptVolumes
from agent.executions.volumes.node_volumes import NodeVolumes
from agent.fencing.killer import Killer
from agent.gpus.open import open_source
from agent.identity.enrolment import Enrolment
from agent.identity.peers import Shown
from agent.inventory.hardware import data_address, facts
from agent.inventory.inventory import Declared
from agent.link import Coordinator
from agent.local_nodes import LocalNode, ShareOfGpus, local_nodes, share_of
from agent.node import NodeAgent, NodeConfig, identity
from agent.runtimes.kernel.cgroups import own_cgroups
from agent.runtimes.kernel.rights import may_switch
from agent.runtimes.process.launcher import Launcher
from agent.runtimes.process.runtime import ProcessRuntime
from agent.runtimes.process.spares import SpareSupervisors
from agent.runtimes.runtime import Runtime
from agent.secrets.calls import SecretCalls
from agent.secrets.directories import NoMemoryDirectoryError, SecretDirectories, memory_directory
from agent.secrets.store import ExecutionSecrets
from agent.settings import AgentSettings, parse
from agent.state import locked
from agent.swarm.serving import PiecesForPeers
from agent.swarm.shelf import PeerRate, PieceShelf, SwarmAccess
from muster.daemon.journal import configure
from muster.daemon.refusal import refusing
from muster.daemon.systemd import Systemd
from muster.domain.ids import NodeId
from muster.domain.jobs.job import RuntimeKind
from muster.lean import heap
from muster.lean.absent import AGENTS_DO_WITHOUT, take_back
from muster.rpc.channel import NOTHING, Credentials
from muster.trust.files import read_secret

JOIN_LIMIT = 5.0
"""Seconds after which a node that has not joined yet counts as started: it goes on trying, however long it takes."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPrograms:
    """What all nodes of one agent share."""

    launcher: Launcher
    killer: Killer
    shown_to_peers: Shown
    """Certificates for asking other nodes and for answering them."""
    secrets: Path | None
    """Directory in memory; None: there is none."""


def main() -> None:
    """Entry point of `muster-agent`."""
    settings = parse(sys.argv[1:], os.environ)
    for secret in ("MUSTER_JOIN_TOKEN", "MUSTER_TOKEN"):
        os.environ.pop(secret, None)  # nothing that this agent starts shall find it
    systemd = Systemd(os.environ)
    configure(settings.log_level, form=settings.log_format)
    faulthandler.enable()  # a loop that hangs is ended by SIGABRT, and the log says where it hung
    with refusing("muster-agent"), locked(settings.state):
        asyncio.run(run(settings, systemd))


async def run(settings: AgentSettings, systemd: Systemd) -> None:
    """Be the node, or the nodes, until SIGTERM or SIGINT."""
    stopped = asyncio.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, stopped.set)
    async with asyncio.TaskGroup() as tasks:
        alive = tasks.create_task(systemd.keep_alive(), name="watchdog")
        await _run(settings, systemd, stopped)
        alive.cancel()
    log.info("agent stopped")


async def _run(settings: AgentSettings, systemd: Systemd, stopped: asyncio.Event) -> None:
    secrets = await asyncio.to_thread(_secrets_directory, settings)  # before it joins, if it cannot be
    enrolment = await _enrolled(settings, systemd, stopped)
    if stopped.is_set():
        return
    shown_to_peers = _nothing if enrolment is None else enrolment.peer_credentials
    launcher = Launcher(other_users=_switches(settings))
    programs = AgentPrograms(launcher=launcher, killer=Killer(), shown_to_peers=shown_to_peers, secrets=secrets)
    nodes = list(_nodes(settings, _coordinator(settings, enrolment), programs))
    try:
        await _run_until(stopped, nodes, programs, settings, enrolment, systemd)
    finally:
        systemd.stopping()
        await asyncio.gather(*(node.close(stop=settings.stop_on_exit) for node in nodes))


async def _enrolled(settings: AgentSettings, systemd: Systemd, stopped: asyncio.Event) -> Enrolment | None:
    """The node, once it has joined or it was told to stop; None for the nodes of `muster up`."""
    if settings.token_file is not None:
        return None
    enrolment = Enrolment(settings.state, NodeId(settings.name), settings.coordinator)
    async with asyncio.TaskGroup() as tasks:
        joining = tasks.create_task(enrolment.ensure(settings.join_token), name="join")
        stop = tasks.create_task(stopped.wait(), name="stop")
        done, _ = await asyncio.wait((joining, stop), return_when=asyncio.FIRST_COMPLETED, timeout=JOIN_LIMIT)
        if not done:
            systemd.ready(f"has not joined yet: {settings.coordinator} does not answer")
            await asyncio.wait((joining, stop), return_when=asyncio.FIRST_COMPLETED)
        joining.cancel()
        stop.cancel()
    return enrolment


def _coordinator(settings: AgentSettings, enrolment: Enrolment | None) -> Coordinator:
    if enrolment is not None:
        return Coordinator(
            address=lambda: enrolment.address, credentials=enrolment.credentials, renew_soon=enrolment.renew_soon
        )
    assert settings.token_file is not None
    shown = Credentials(token=read_secret(settings.token_file))
    return Coordinator(address=lambda: settings.coordinator, credentials=lambda: shown)


def _switches(settings: AgentSettings) -> bool:
    """Whether processes run as the user for jobs, and not as this one."""
    if not settings.processes or settings.job_user is None:
        return False
    if not may_switch():
        log.warning("processes run as the agent's own user, and may read what it may: this agent may not switch users")
        return False
    return True


def _secrets_directory(settings: AgentSettings) -> Path | None:
    """Where secrets may lie. One that was named must be right; without any, the agent is good for all other jobs."""
    try:
        return memory_directory(settings.secrets_dir, os.environ)
    except NoMemoryDirectoryError as error:
        if settings.secrets_dir is not None:
            raise
        log.warning("executions cannot get secrets on this node", extra={"cause": str(error)})
        return None


def _nothing() -> Credentials:
    """What nodes of `muster up` show to each other: they speak plain text, and only on this machine."""
    return NOTHING


async def _run_until(
    stopped: asyncio.Event,
    nodes: Sequence[NodeAgent],
    programs: AgentPrograms,
    settings: AgentSettings,
    enrolment: Enrolment | None,
    systemd: Systemd,
) -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_start_killer(programs.killer), name="start the killer")
        running = [tasks.create_task(node.run(), name=node.name) for node in nodes]
        if enrolment is not None:

            def reconnect() -> None:
                for node in nodes:
                    node.reconnect()

            def away() -> bool:
                return not any(node.connected for node in nodes)

            running.append(tasks.create_task(enrolment.renew(reconnect), name="certificate"))
            running.append(tasks.create_task(enrolment.follow(away, reconnect), name="agents' door"))
        for node in nodes:
            await node.ready.wait()
        log.info("agent runs", extra={"nodes": ",".join(node.name for node in nodes)})
        systemd.ready(f"runs {', '.join(node.name for node in nodes)}")
        if settings.ready_file is not None:
            settings.ready_file.write_text("ready\n")
        heap.give_back()
        await stopped.wait()
        for task in running:
            task.cancel()


async def _start_killer(killer: Killer) -> None:
    """Have it there before the first gang, which would wait for it; where that fails it is tried again at need."""
    try:
        await asyncio.to_thread(killer.start)
    except OSError as error:
        log.warning("no killer yet", extra={"cause": str(error)})


def _nodes(settings: AgentSettings, coordinator: Coordinator, programs: AgentPrograms) -> Iterator[NodeAgent]:
    if not settings.local_nodes:
        address = data_address(settings.coordinator, settings.address)
        alone = LocalNode(name=NodeId(settings.name), state=settings.state, address=address, ports=settings.ports)
        yield _node(settings, alone, coordinator, programs, bind="")
        return
    for number, local in enumerate(local_nodes(settings.local_nodes, settings.state, settings.ports)):
        yield _node(settings, local, coordinator, programs, bind=local.address, share=(number, settings.local_nodes))


def _node(
    settings: AgentSettings,
    local: LocalNode,
    coordinator: Coordinator,
    programs: AgentPrograms,
    *,
    bind: str,
    share: tuple[int, int] | None = None,
) -> NodeAgent:
    ports = PortLedger(*local.ports, address=bind)
    if ports.warning:
        log.warning(ports.warning)
    source = open_source(settings.gpu_provider, local.name)
    if share is not None and settings.gpu_provider == "nvml":
        source = ShareOfGpus(source, *share)
    # One for each node: it clears what it does not know.
    root = None if programs.secrets is None else programs.secrets / identity(local.state)
    secret_calls = SecretCalls()
    secrets = ExecutionSecrets(SecretDirectories(root), secret_calls.ask)
    swarms = _swarms(settings, local, secret_calls, programs)
    code = CodeStore(
        local.state / CODE_CACHE,
        CodeQuestions(shown=secret_calls.ask_for_code, fetched=secret_calls.tell_code, keys=secret_calls.ask_for_keys),
        coordinator.address,
        coordinator.credentials,
        swarms,
    )
    outputs = OutputStore(secret_calls.ask_to_store, coordinator.address, coordinator.credentials)
    inputs = InputStore(
        _cache(settings, local),
        InputQuestions(found=secret_calls.tell_inputs, tree=secret_calls.ask_for_tree, keys=secret_calls.ask_for_keys),
        coordinator.address,
        coordinator.credentials,
        swarms,
    )
    checkpoints = CheckpointStore(
        local.state / KEPT_PARTS,
        CheckpointQuestions(save=secret_calls.ask_to_save, tree=secret_calls.ask_for_checkpoint),
        coordinator.address,
        coordinator.credentials,
        swarms,
        inputs.cache,
    )
    declared = _declared(settings, share)
    volumes = NodeVolumes(_volumes_directory(settings, local), KeptVolumes(settings.kept_size))
    config = NodeConfig(
        volumes=volumes,
        name=local.name,
        state=local.state,
        address=local.address,
        coordinator=coordinator,
        declared=declared,
        attach=settings.attach,
        log_limit=settings.log_limit << 20,
        docker_socket=settings.docker_socket,
        killer=programs.killer,
        shown_to_peers=programs.shown_to_peers,
        secret_calls=secret_calls,
        secrets=secrets,
        code=code,
        inputs=inputs,
        outputs=outputs,
        checkpoints=checkpoints,
        pieces=None if swarms is None else PiecesForPeers(local.name, swarms.shelf, PeerRate(settings.peer_rate)),
    )
    layers = _layers(settings, local, swarms)
    return NodeAgent(config, _runtimes(settings, config, programs, secrets, code, layers), source, ports)


def _swarms(
    settings: AgentSettings, local: LocalNode, calls: SecretCalls, programs: AgentPrograms
) -> SwarmAccess | None:
    """How a node gets into swarms; None: it may not."""
    if not settings.peers:
        return None
    return SwarmAccess(node=local.name, ask=calls.ask_for_swarm, shelf=PieceShelf(), shown=programs.shown_to_peers)


def _cache(settings: AgentSettings, local: LocalNode) -> CacheSettings:
    """What a node keeps of inputs; local nodes share a directory that was named."""
    if settings.cache_dir is None:
        directory = local.state / CODE_CACHE
    else:
        directory = settings.cache_dir / local.name if settings.local_nodes else settings.cache_dir
    return CacheSettings(
        directory=directory / INPUT_CACHE,
        executions=local.state / "executions",
        size=settings.cache_size,
        keep_free=settings.keep_free,
    )


def _layers(settings: AgentSettings, local: LocalNode, swarms: SwarmAccess | None) -> LayerSite | None:
    """Where a node keeps layers of images; None: its engine pulls by itself, as that of local nodes is one for all."""
    if not settings.peer_images or settings.local_nodes:
        return None
    return LayerSite(directory=_cache(settings, local).directory.with_name(LAYER_CACHE), swarms=swarms)


def _volumes_directory(settings: AgentSettings, local: LocalNode) -> Path | None:
    """Where the volumes of a node lie; local nodes share a directory that was named."""
    if settings.volumes_dir is None or not settings.local_nodes:
        return settings.volumes_dir
    return settings.volumes_dir / local.name


def _declared(settings: AgentSettings, share: tuple[int, int] | None) -> Declared:
    """What the operator says about a node; local nodes share out what the machine has."""
    cpus, memory = settings.cpus, settings.memory
    if share is not None and not settings.whole_machine:
        machine = facts(settings.state)
        cpus = cpus or share_of(machine.cpus, *share)
        memory = memory or share_of(machine.memory, *share)
    return Declared(labels=settings.labels, cpus=cpus, memory=memory)


def _runtimes(
    settings: AgentSettings,
    node: NodeConfig,
    programs: AgentPrograms,
    secrets: ExecutionSecrets,
    code: CodeStore,
    layers: LayerSite | None,
) -> dict[RuntimeKind, Runtime]:
    runtimes: dict[RuntimeKind, Runtime] = {}
    if settings.docker_socket is not None:
        # Docker's client takes a quarter of an agent's memory, which nodes without Docker do not have to spare for it.
        take_back(AGENTS_DO_WITHOUT)  # Docker's client does not
        from agent.runtimes.docker.images.agreement import ImageTerms  # noqa: PLC0415 - as said above
        from agent.runtimes.docker.images.loopback import through_node  # noqa: PLC0415 - as said above
        from agent.runtimes.docker.images.pulled import PULLED_FILE, PulledImages  # noqa: PLC0415 - as said above
        from agent.runtimes.docker.runtime import Confines, DockerRuntime  # noqa: PLC0415 - as said above

        private = tuple(filter(None, (settings.state, programs.secrets, settings.volumes_dir, settings.cache_dir)))
        confines = Confines(
            mount_roots=settings.mount_roots, private=private, job_user=settings.job_user, volumes=node.volumes
        )
        images = ImageTerms(
            agree=node.secret_calls.agree_on_image,
            pulled=PulledImages(node.state / PULLED_FILE),
            keep_free=settings.keep_free,
        )
        images = images if layers is None else through_node(images, layers)
        docker = DockerRuntime(settings.docker_socket, identity(node.state), confines, secrets, code, images)
        runtimes[RuntimeKind.DOCKER] = docker
    if settings.processes:
        runtimes[RuntimeKind.PROCESS] = ProcessRuntime(
            os.environ,
            SpareSupervisors(programs.launcher, own_cgroups(identity(node.state))),
            secrets.directories,
            settings.job_user,
            settings.process_users,
            code,
            volumes=node.volumes,
        )
    return runtimes
