"""Muster as it is deployed: a coordinator and one agent process for each node, mTLS between all of them."""

import asyncio
import math
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from bench.programs import ProgramError, cpu_seconds, ended_at_exit, serving, start
from bench.scratch import Scratch
from coordinator.core.turn.turn import DISMISSED_WITHIN
from muster.client.client import Client
from muster.domain.fleet.node import NodeState
from muster.domain.jobs.job import JobSpec, Packing, Resources, Role
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.view import JobView
from muster.rpc.channel import Credentials
from muster.trust.files import read_secret, write_private

READY_WITHIN = 120.0
AUTHORITY = Path("trust", "authority.pem")
MOST_NODES = 10_000
ENDED_WITHIN = 120.0
CPUS = 4
FIRST_PORT, PORTS_EACH = 20_000, 100
LOG_LEVEL = "warning"
"""What is logged where nothing else is said: nothing that takes time while something is measured."""
LOOK = 0.1
"""Seconds of one look at how much CPU coordinator and agents use."""
RESTING = 0.01
"""Seconds of CPU that all of them together use in a look when there is nothing to do."""
PROCESSES = ("--no-docker", "--processes", "--job-user", "none")
"""What agents are told where nothing else is said: workers run as the agent's user, as under srun."""
GROUP = 8
"""So many nodes, one after the other, carry the same label `local/group`, from 0 on."""
AGENTS_AT_ONCE = 8
"""So many agents start at a time; more would only wait for each other."""


@dataclass(slots=True)
class Fleet:
    """What runs."""

    client: Client
    address: str
    state: Path
    """The coordinator's directory: its authority, the admin's token."""
    join_token: str
    coordinator: int
    """The coordinator's process id."""
    agents: list[int] = field(default_factory=list)

    def command_line(self) -> tuple[Sequence[str | Path], Mapping[str, str]]:
        """`muster` for this fleet, and what goes into its environment."""
        known = {
            "MUSTER_COORDINATOR": self.address,
            "MUSTER_TLS_CA": str(self.state / AUTHORITY),
            "MUSTER_TOKEN": read_secret(self.state / "admin-token"),
        }
        return [Path(sys.executable).with_name("muster")], known

    async def ended(self, job: str, *, well: bool = True) -> None:
        """Wait for the end of a job; ProgramError if it is not the right one."""
        async with asyncio.timeout(ENDED_WITHIN):
            view = await self.client.jobs.wait(job)
        if well and view.phase is not JobPhase.SUCCEEDED:
            raise ProgramError(f"{job} {view.phase}: {view.summary}")

    async def settled(self, job: str) -> JobView:
        """The job once its logs are here and its agents have cleared up, so that nothing of it slows the next one."""
        async with asyncio.timeout(ENDED_WITHIN):
            while True:
                view = await self.client.jobs.get(job)
                if all(each.log_complete for each in view.attempts[-1].executions):
                    break
                await asyncio.sleep(0.02)
            # Agents are told a little later what they may clear away, and nobody is told when they have.
            await asyncio.sleep(DISMISSED_WITHIN.total_seconds())
            used = -math.inf
            while sum(self.used()) - used > RESTING:
                used = sum(self.used())
                await asyncio.sleep(LOOK)
        return view

    def used(self) -> tuple[float, float]:
        """Seconds of CPU of the coordinator, and of all agents; what they start not included."""
        return cpu_seconds(self.coordinator), sum(map(cpu_seconds, self.agents))

    async def nodes_ready(self, count: int) -> None:
        """Wait until so many nodes can be used."""
        async with asyncio.timeout(READY_WITHIN):
            while sum(node.state is NodeState.READY for node in await self.client.nodes.list()) < count:
                await asyncio.sleep(0.05)


def gang(size: int, *command: str | Path, cpus: int = 100, spread: bool = True, **role: object) -> JobSpec:
    """A job with an execution for each of so many nodes."""
    one = Role(count=size, command=tuple(map(str, command)), resources=Resources(cpu_millis=cpus), **role)  # type: ignore[arg-type]  # a builder takes any field
    if not spread:
        return JobSpec(name="bench", roles=(one,))
    return JobSpec(name="bench", roles=(one,), packing=Packing.SPREAD, max_per_node=1)


@asynccontextmanager
async def coordinator(directory: Path, log_level: str = LOG_LEVEL) -> AsyncIterator[Fleet]:
    """A coordinator without nodes, and a client that is connected to it."""
    state = directory / "coordinator"
    async with ended_at_exit() as programs:
        process, address = await start_coordinator(directory, log_level=log_level)
        programs.append(process)
        async with Client(address, credentials(state), timeout=60) as client:
            join_token, _ = await client.join_tokens.create(uses=MOST_NODES)
            yield Fleet(client, address, state, join_token, process.pid)


def credentials(state: Path) -> Credentials:
    """Credentials of the admin of a coordinator, from its directory."""
    return Credentials(authority=(state / AUTHORITY).read_bytes(), token=read_secret(state / "admin-token"))


async def start_coordinator(
    directory: Path, *options: str, log_level: str = LOG_LEVEL
) -> "tuple[subprocess.Popen[bytes], str]":
    """The process, and where it serves; without options it takes any port."""
    ready = directory / "address"
    ready.unlink(missing_ok=True)
    places = ["--state", directory / "coordinator", "--ready-file", ready, *(options or ("--listen", "127.0.0.1:0"))]
    command = [sys.executable, "-m", "coordinator", *places, "--log-level", log_level]
    process = start(command, directory / "coordinator.log")
    return process, await serving(process, ready, directory / "coordinator.log", READY_WITHIN)


@asynccontextmanager
async def fleet(scratch: Scratch, nodes: int, *options: str | Path, **environment: str) -> AsyncIterator[Fleet]:
    """So many nodes that are ready, each an agent of its own, which gets `options` and has `environment`."""
    directory = scratch.fresh("muster")
    async with coordinator(directory) as it, ended_at_exit() as agents:
        for number in range(1, nodes + 1):
            agents.append(agent_program(it, directory, number, options or PROCESSES, environment))
            it.agents.append(agents[-1].pid)
            await it.nodes_ready(number - AGENTS_AT_ONCE)
        await it.nodes_ready(nodes)
        yield it


def agent_program(
    it: Fleet,
    directory: Path,
    number: int,
    options: Sequence[str | Path],
    environment: Mapping[str, str] = MappingProxyType({}),
) -> "subprocess.Popen[bytes]":
    """The agent of one more node, as a program."""
    first = FIRST_PORT + number * PORTS_EACH
    place = ["--state", directory / f"node{number}", "--address", f"127.0.1.{number}"]
    offer = ["--cpus", str(CPUS), "--memory", str(500 * 2**20), "--ports", f"{first}-{first + PORTS_EACH - 1}"]
    offer += ["--label", f"group={(number - 1) // GROUP}"]
    joining = directory / "join-token"
    write_private(joining, it.join_token.encode())
    who = ["--coordinator", it.address, "--name", f"node{number}", "--join-file", joining]
    command = [sys.executable, "-m", "agent", *who, *place, *offer, "--stop-on-exit", "--log-level", "warning"]
    return start([*command, *options], directory / f"node{number}.log", **environment)
