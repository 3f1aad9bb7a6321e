"""A coordinator, agents, a relay and a depot on this machine, as child programs that are watched and stopped."""

import asyncio
import errno
import os
import signal
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from muster.cli.local.claim import Claim, claimed
from muster.cli.output.screen import say
from muster.client.client import Client
from muster.client.endpoint import DEFAULT_ADDRESS, Login, parse_address
from muster.daemon.own_programs import command_of, is_frozen, lean_command_of
from muster.domain.errors import ConflictError, InvalidJobError, MusterError, UnavailableError
from muster.domain.fleet.node import NodeState, NodeView
from muster.rpc.channel import Credentials, is_loopback
from muster.trust.files import read_secret

_READY_LIMIT = 60.0
"""Seconds until the coordinator serves, and again until all nodes are ready."""
_STOP_LIMIT = 20.0
"""Seconds between SIGTERM and SIGKILL; longer than the default grace period of a job."""
COMPANIONS = ("relay", "depot")
"""All programs that there can be beside the coordinator."""
"""The programs beside the coordinator."""
_COMPANION_LIMIT = 10.0
"""Seconds that are waited for each of them at the start."""
_COMPANION_PAUSE = 2.0
"""Seconds until one is started again that has ended."""
_TOLD_LINES = 5
"""Lines told from the log of a program that died."""


class ProgramEndedError(MusterError):
    """A program of the local fleet ended by itself; names it, with the last lines that it said."""

    def __init__(self, name: str, code: int, last_lines: Sequence[str], log: Path) -> None:
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        said = "".join(f"\n  {line}" for line in last_lines)
        super().__init__(f"the {name} {how}; its log is {log}{':' if said else ''}{said}")
        self.name = name
        self.code = code


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
    """Programs beside the coordinator: without a relay nobody can attach to what runs, without a depot no code goes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalFleet:
    """What runs."""

    login: Login
    nodes: tuple[NodeView, ...]
    logs: tuple[Path, ...]


@asynccontextmanager
async def local_fleet(plan: FleetPlan) -> AsyncIterator[LocalFleet]:
    """All of it, with every node ready; at the end relay and depot are stopped first, then agents and coordinator.

    A program that ends by itself is raised in the block as ProgramEndedError. Raises ConflictError where another
    `muster up` runs in the directory, or another program listens at the address.
    """
    with claimed(plan.directory) as claim:
        check_free(plan.listen)
        ready_file = plan.directory / f"address.{os.getpid()}"
        ready_file.unlink(missing_ok=True)
        coordinator_log, agent_log = plan.directory / "coordinator.log", plan.directory / "agent.log"
        async with _running("coordinator", _coordinator_arguments(plan, ready_file), coordinator_log, claim):
            address = await _address_in(ready_file)
            async with _running("agent", _agent_arguments(plan, address), agent_log, claim):
                login = Login(address=address, token=read_secret(_token_file(plan)))
                nodes = await _ready_nodes(login, plan.nodes)
                claim.serves(address)
                async with _companions_beside(plan, claim) as logs:
                    yield LocalFleet(login=login, nodes=nodes, logs=(coordinator_log, agent_log, *logs))


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


@asynccontextmanager
async def _running(name: str, arguments: Sequence[str], log: Path, claim: Claim) -> AsyncIterator[None]:
    """The program runs within the block; its own end is raised there. It ends when this program does, at the latest."""
    begin = _length(log)
    process = await _started(command_of(name, *arguments), log, claim)
    try:
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(_raise_when_ended(name, process, log, begin), name=f"watch the {name}")
            yield
            watching.cancel()
    finally:
        await _stop(name, process)


@asynccontextmanager
async def _companions_beside(plan: FleetPlan, claim: Claim) -> AsyncIterator[Sequence[Path]]:
    """Relay and depot within the block, as far as there are to be any; their logs."""
    logs = {name: plan.directory / f"{name}.log" for name in plan.companions}
    async with asyncio.TaskGroup() as tasks:
        first = {name: asyncio.Event() for name in plan.companions}
        keeping = [
            tasks.create_task(_keep_companion(name, plan, log, claim, first[name]), name=f"keep a {name}")
            for name, log in logs.items()
        ]
        try:
            with suppress(TimeoutError):  # the fleet does without, and says so to whoever needs one of them
                async with asyncio.timeout(_COMPANION_LIMIT):
                    for each in first.values():
                        await each.wait()
            yield tuple(logs.values())
        finally:
            for task in keeping:
                task.cancel()


async def _keep_companion(name: str, plan: FleetPlan, log: Path, claim: Claim, first: asyncio.Event) -> None:
    """Have a program run, and another one after it has ended, until cancelled; sets `first` once there was one."""
    host, ready_file = plan.listen.rpartition(":")[0], plan.directory / f"{name}.{os.getpid()}"
    arguments = ("--state", str(plan.directory / "coordinator"), f"--listen-{name}", f"{host}:0")
    while True:
        process = await _started(
            command_of(f"coordinator.{name}", *arguments, "--ready-file", str(ready_file)), log, claim
        )
        try:
            while _taken(ready_file) is None and process.returncode is None:  # noqa: ASYNC110 - as in `_address_in`
                await asyncio.sleep(0.05)
            first.set()
            await process.wait()
        finally:
            await _stop(name, process)
        claim.ended(process.pid)
        await asyncio.sleep(_COMPANION_PAUSE)


async def _started(command: Sequence[str], log: Path, claim: Claim) -> asyncio.subprocess.Process:
    with log.open("ab") as output:
        # A group of its own, so that Ctrl-C in the terminal reaches only us and the order of stopping is ours.
        process = await asyncio.create_subprocess_exec(
            *lean_command_of("muster.cli.local.child", str(os.getpid()), *command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            process_group=0,
        )
    claim.started(process.pid)
    return process


async def _raise_when_ended(name: str, process: asyncio.subprocess.Process, log: Path, begin: int) -> None:
    code = await process.wait()
    raise ProgramEndedError(name, code, _last_lines(log, begin), log)


async def _stop(name: str, process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        async with asyncio.timeout(_STOP_LIMIT):
            await process.wait()
    except TimeoutError:
        say(f"the {name} did not stop within {_STOP_LIMIT:.0f} s and is killed", err=True)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _address_in(ready_file: Path) -> str:
    address = None
    try:
        async with asyncio.timeout(_READY_LIMIT):
            # A file tells nobody that it is there; this is looked for during one start only.
            while (address := _taken(ready_file)) is None:  # noqa: ASYNC110 - a program that begins tells nobody but by its file
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise UnavailableError(f"the coordinator does not serve after {_READY_LIMIT:.0f} s") from None
    return address


def _taken(ready_file: Path) -> str | None:
    try:
        address = ready_file.read_text().strip()
    except FileNotFoundError:
        return None
    ready_file.unlink()
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


def client_of(login: Login) -> Client:
    """A client of a local fleet."""
    return Client(login.address, Credentials(token=login.token))


def _is_here(node: NodeView) -> bool:
    # A node of an earlier run is remembered, but has not spoken yet.
    return node.state is NodeState.READY and node.last_seen_at is not None


def _length(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


def _last_lines(log: Path, begin: int) -> Sequence[str]:
    with log.open("rb") as file:
        file.seek(begin)
        lines = file.read().decode(errors="replace").splitlines()
    return [line for line in lines if line.strip()][-_TOLD_LINES:]
