"""A coordinator, its nodes and what goes beside it on this machine, as child programs that are watched and stopped."""

import asyncio
import errno
import os
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from muster.cli.local.claim import claimed
from muster.cli.local.companions import CompanionProgram, companions_beside
from muster.cli.local.programs import running, taken
from muster.client.client import Client
from muster.client.endpoint import DEFAULT_ADDRESS, Login, parse_address
from muster.daemon.own_programs import is_frozen
from muster.domain.errors import ConflictError, InvalidJobError, MusterError, UnavailableError
from muster.domain.fleet.node import NodeState, NodeView
from muster.rpc.channel import Credentials, is_loopback
from muster.trust.files import read_secret

_READY_LIMIT = 60.0
"""Seconds until the coordinator serves, and again until all nodes are ready."""
RELAY, DEPOT, CONSOLE = "relay", "depot", "console"
_CONSOLE_PORT = 7464
"""Where browsers look for the console; another one where it is taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPlan:
    """What to start."""

    directory: Path
    """State and logs of all of it."""
    nodes: int = 3
    listen: str = DEFAULT_ADDRESS
    gpu_provider: str | None = None
    """Where the nodes' GPUs come from; None is the agent's default."""
    docker: bool = True
    """Whether containers are run, where a Docker Engine answers."""
    cpus: int | None = None
    """CPUs that each node offers; None: its share of this machine."""
    memory: int | None = None
    """Bytes of memory that each node offers; None: its share of this machine."""
    whole_machine: bool = False
    """Whether each node offers all CPUs and memory of this machine, instead of its share."""
    companions: tuple[str, ...] = ()
    """Programs beside the coordinator: nobody attaches to what runs without a relay, no code goes without a depot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalFleet:
    """What runs."""

    login: Login
    nodes: tuple[NodeView, ...]
    logs: tuple[Path, ...]


@asynccontextmanager
async def local_fleet(plan: FleetPlan) -> AsyncIterator[LocalFleet]:
    """All of it, with every node ready; at the end companions are stopped first, then agents and coordinator.

    A program that ends by itself is raised in the block as ProgramEndedError. Raises ConflictError where another
    `muster up` runs in the directory, or another program listens at the address.
    """
    with claimed(plan.directory) as claim:
        check_free(plan.listen)
        ready_file = plan.directory / f"address.{os.getpid()}"
        ready_file.unlink(missing_ok=True)
        coordinator_log, agent_log = plan.directory / "coordinator.log", plan.directory / "agent.log"
        async with running("coordinator", _coordinator_arguments(plan, ready_file), coordinator_log, claim):
            address = await _address_in(ready_file)
            async with running("agent", _agent_arguments(plan, address), agent_log, claim):
                login = Login(address=address, token=read_secret(_token_file(plan)))
                nodes = await _ready_nodes(login, plan.nodes)
                claim.serves(address)
                programs = [_companion(name, plan, address) for name in plan.companions]
                async with companions_beside(programs, plan.directory, claim) as beside:
                    served = beside[CONSOLE].address if CONSOLE in beside else None
                    yield LocalFleet(
                        login=replace(login, console=served or ""),
                        nodes=nodes,
                        logs=(coordinator_log, agent_log, *(each.log for each in beside.values())),
                    )


def parse_listen(text: str) -> str:
    """`host:port` on this machine from `[HOST:]PORT`; port 0 takes a free one. Raises InvalidJobError."""
    if text.isascii() and text.isdecimal():
        text = f"127.0.0.1:{text}"
    free = text.endswith(":0")
    address = parse_address(text.removesuffix(":0") if free else text)
    if not is_loopback(address):
        raise InvalidJobError(
            f"`muster up` serves this machine alone, unencrypted; {text} is no loopback address such as "
            f"{DEFAULT_ADDRESS} (docs/install.md has coordinators for others)"
        )
    return f"{address.rpartition(':')[0]}:0" if free else address


def check_free(listen: str) -> None:
    """Raise ConflictError where another program listens at `host:port`."""
    host, _, port = listen.rpartition(":")
    try:
        family, _, _, _, where = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(where)
    except socket.gaierror as error:
        raise InvalidJobError(f"{host} is no address of this machine: {error.strerror}") from None
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise ConflictError(f"cannot listen at {listen}: {error.strerror}") from None
        raise ConflictError(
            f"port {port} is taken by another program; `--listen 127.0.0.1:0` takes a free one"
        ) from None


def _coordinator_arguments(plan: FleetPlan, ready_file: Path) -> Sequence[str]:
    state = plan.directory / "coordinator"
    return ("--local", "--state", str(state), "--listen", plan.listen, "--ready-file", str(ready_file))


def _token_file(plan: FleetPlan) -> Path:
    """Where the coordinator writes the token that it wants to be shown, before it serves."""
    return plan.directory / "coordinator" / "local-token"


def _agent_arguments(plan: FleetPlan, address: str) -> Sequence[str]:
    state = plan.directory / "agents"
    arguments = ["--coordinator", address, "--local-nodes", str(plan.nodes), "--state", str(state)]
    arguments += ["--token-file", str(_token_file(plan))]
    if plan.gpu_provider is not None:
        arguments += ["--gpu-provider", plan.gpu_provider]
    if not plan.docker:
        arguments.append("--no-docker")
    if plan.cpus is not None:
        arguments += ["--cpus", str(plan.cpus)]
    if plan.memory is not None:
        arguments += ["--memory", str(plan.memory)]
    if plan.whole_machine:
        arguments.append("--whole-machine")
    return arguments


def _companion(name: str, plan: FleetPlan, address: str) -> CompanionProgram:
    host = plan.listen.rpartition(":")[0]

    def beside_coordinator() -> Sequence[str]:
        return ("--state", str(plan.directory / "coordinator"), f"--listen-{name}", f"{host}:0")

    def console() -> Sequence[str]:
        own = ("--token-file", str(_token_file(plan)), "--state", str(plan.directory / "console"))
        return ("--coordinator", address, "--listen", _console_address(host), *own)

    return CompanionProgram(
        name=name,
        module="console" if name == CONSOLE else f"coordinator.{name}",
        log=plan.directory / f"{name}.log",
        arguments=console if name == CONSOLE else beside_coordinator,
    )


def _console_address(host: str) -> str:
    wanted = f"{host}:{_CONSOLE_PORT}"
    try:
        check_free(wanted)
    except ConflictError:
        return f"{host}:0"
    return wanted


async def _address_in(ready_file: Path) -> str:
    address = None
    try:
        async with asyncio.timeout(_READY_LIMIT):
            # A file tells nobody that it is there; this is looked for during one start only.
            while (address := taken(ready_file)) is None:  # noqa: ASYNC110 - a program that begins tells nobody but by its file
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise UnavailableError(f"the coordinator does not serve after {_READY_LIMIT:.0f} s") from None
    return address


async def _ready_nodes(login: Login, wanted: int) -> tuple[NodeView, ...]:
    ready: tuple[NodeView, ...] = ()
    try:
        async with asyncio.timeout(_READY_LIMIT), client_of(login) as client:
            while len(ready) < wanted:
                await asyncio.sleep(0.05)
                ready = tuple(node for node in await client.nodes.list() if _is_here(node))
    except TimeoutError:
        raise UnavailableError(
            f"{len(ready)} of {wanted} nodes are ready after {_READY_LIMIT:.0f} s",
        ) from None
    return ready


def require_programs(command: str) -> None:
    """Raise MusterError where coordinator and agent are not installed beside the client."""
    if not is_frozen() and any(find_spec(package) is None for package in ("coordinator", "agent")):
        raise MusterError(
            f"`{command}` starts a coordinator and agents, which are not installed: `pip install muster-fleet`"
        )


async def link_of(login: Login) -> str:
    """The link with which a browser is signed in at the console of a local fleet, once; empty where there is none."""
    if not login.console:
        return ""
    async with client_of(login) as client:
        return (await client.logins.hand()).link(login.console)


def client_of(login: Login) -> Client:
    """A client of a local fleet."""
    return Client(login.address, Credentials(token=login.token))


def _is_here(node: NodeView) -> bool:
    # A node of an earlier run is remembered, but has not spoken yet.
    return node.state is NodeState.READY and node.last_seen_at is not None
