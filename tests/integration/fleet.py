"""A real coordinator and real agents in one process, with a cable to each agent that a test can cut."""

import asyncio
import gc
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.executions.ports import PortLedger
from agent.fencing.clock import Clock
from agent.gpus.open import GpuSource, open_source
from agent.inventory.inventory import Declared
from agent.link import Coordinator
from agent.node import NodeAgent, NodeConfig
from agent.runtimes.process.runtime import ProcessRuntime
from agent.runtimes.runtime import Runtime
from coordinator.clock import wall_time
from coordinator.engine.engine import Engine
from coordinator.rpc.clients.jobs import READER_PATIENCE
from coordinator.rpc.server import serving_locally
from muster.client.client import Client
from muster.domain.ids import NodeId
from muster.domain.jobs.job import JobSpec, RuntimeKind
from muster.domain.jobs.lifecycle import State
from muster.domain.jobs.view import ExecutionView, JobView, LogLine
from muster.rpc.channel import Credentials
from muster.trust.certificates import issue_peer, make_authority, new_key, request_certificate
from muster.trust.identity import Identity
from tests.integration.cable import LOOPBACK, Cable
from tests.integration.journal import Journal
from tests.integration.parts import working_parts

SECRET = "known to this fleet alone"
SHOWN = Credentials(token=SECRET)
FIRST_PORT = 30_200
"""Below what the kernel gives to outgoing connections, above what agents lease by default."""
PORTS_EACH = 100
LAST_NODE = 20
GPUS = "fake:8xH100"
CPUS = 16
ALL_WITHIN = 60.0
"""Seconds for one test, far more than any needs."""
SETTLED_WITHIN = 5.0


@dataclass(slots=True)
class _Member:
    """One node of the fleet."""

    cable: Cable
    number: int
    agent: NodeAgent | None = None
    running: "asyncio.Task[None] | None" = None


@dataclass(slots=True)
class Fleet:
    """What a test does with coordinator and agents."""

    directory: Path
    tasks: asyncio.TaskGroup
    journal: Journal
    client: Client = field(init=False)
    engine: Engine = field(init=False)
    """The engine of the coordinator that runs."""
    address: str = f"{LOOPBACK}:0"
    """The coordinator's address; it stays the same when it is restarted."""
    reader_patience: float = READER_PATIENCE
    """The patience of a coordinator that is started from here on."""
    _authority: Identity = field(default_factory=lambda: make_authority(wall_time()))
    _members: dict[str, _Member] = field(default_factory=dict)
    _coordinator: "asyncio.Task[None] | None" = None

    # the coordinator

    async def start_coordinator(self) -> None:
        """Serve from the fleet's directory, at the address of before if there was one."""
        serves = asyncio.Event()
        self._coordinator = self.tasks.create_task(self._coordinate(serves), name="coordinator")
        await serves.wait()

    async def stop_coordinator(self) -> None:
        """End it in an orderly way."""
        assert self._coordinator is not None
        await _end(self._coordinator)

    async def crash_coordinator(self) -> None:
        """End it so that no agent hears of it."""
        for member in self._members.values():
            member.cable.cut()
        await self.stop_coordinator()
        for member in self._members.values():
            member.cable.mend()

    async def restart_coordinator(self) -> None:
        """End it without a word, and start it again."""
        await self.crash_coordinator()
        await self.start_coordinator()

    async def _coordinate(self, serves: asyncio.Event) -> None:
        async with working_parts(self.directory, reader_patience=self.reader_patience) as parts:
            self.engine = parts.engine
            async with serving_locally(parts, self.address, SECRET) as self.address:
                serves.set()
                await _cancelled()

    # nodes

    async def start_agent(
        self,
        name: str,
        *,
        gpus: str | GpuSource = GPUS,
        state: Path | None = None,
        runtime: Runtime | None = None,
        claims: str | None = None,
        pace: float = 1.0,
    ) -> None:
        """A node, or one that comes back; it runs when this returns, connected or not.

        `claims` is the name under which it presents itself, where that is not its own; `pace` is how much faster the
        clock runs by which it is fenced.
        """
        member = await self._member(name)
        runtimes: dict[RuntimeKind, Runtime] = {RuntimeKind.PROCESS: runtime or ProcessRuntime()}
        address, first = f"127.0.0.{member.number + 2}", FIRST_PORT + member.number * PORTS_EACH
        config = NodeConfig(
            name=NodeId(claims or name),
            state=state or self.state_of(name),
            address=address,
            coordinator=Coordinator(address=lambda: member.cable.address, credentials=lambda: SHOWN),
            declared=Declared(cpus=CPUS, memory=64 << 30, labels={"name": name}),
            clock=Clock(pace),
            shown_to_peers=lambda: shown,
        )
        shown = self._shown_to_peers(config.name)
        ports = PortLedger(first, first + PORTS_EACH - 1, address=address)
        source = open_source(gpus, config.name) if isinstance(gpus, str) else gpus
        member.agent = NodeAgent(config, runtimes, source, ports)
        member.running = self.tasks.create_task(member.agent.run(), name=name)
        await member.agent.ready.wait()

    async def start_agents(self, *names: str) -> None:
        """Several nodes, connected when this returns."""
        for name in names:
            await self.start_agent(name)
        for name in names:
            await self.connected(name)

    async def stop_agent(self, name: str, *, stop: bool = True) -> None:
        """End an agent in an orderly way, as SIGTERM does; what it runs is stopped, or left to the next agent."""
        member = self._members[name]
        assert member.agent is not None
        assert member.running is not None
        await _end(member.running)
        await member.agent.close(stop=stop)
        member.agent = member.running = None

    async def connected(self, name: str, times: int = 1) -> None:
        """Wait until the coordinator has accepted a node so many times."""
        await self.journal.heard("node connected", times, node=name)

    def cable(self, name: str) -> Cable:
        """What connects a node to the coordinator."""
        return self._members[name].cable

    def state_of(self, name: str) -> Path:
        """The state directory of a node's agent."""
        return self.directory / "nodes" / name

    def execution_directories(self) -> list[str]:
        """What the agents keep of executions that are not cleared away."""
        return sorted(directory.name for directory in self.directory.glob("nodes/*/executions/*"))

    def _shown_to_peers(self, node: NodeId) -> Credentials:
        """Credentials with which nodes that have joined speak to each other, however they speak to this coordinator."""
        key = new_key()
        certificate = issue_peer(self._authority, request_certificate(key, node), node, wall_time())
        return Credentials(authority=self._authority.certificate, certificate=certificate, key=key)

    async def _member(self, name: str) -> _Member:
        if name not in self._members:
            assert len(self._members) < LAST_NODE
            cable = Cable(self.tasks)
            await cable.lay(self.address)
            self._members[name] = _Member(cable=cable, number=len(self._members))
        return self._members[name]

    async def close(self) -> None:
        """End everything."""
        for name in [name for name, member in self._members.items() if member.agent is not None]:
            await self.stop_agent(name)
        for member in self._members.values():
            await member.cable.take_up()
        if self._coordinator is not None and not self._coordinator.done():
            await self.stop_coordinator()

    # jobs

    async def run(self, spec: JobSpec) -> JobView:
        """The job once it has ended."""
        return await self.client.jobs.wait((await self.client.jobs.submit(spec)).id)

    async def until(self, job: str, reached: Callable[[JobView], bool]) -> JobView:
        """The first view of a job that is as wanted."""
        async with aclosing(self.client.jobs.watch(job)) as views:
            async for view in views:
                if reached(view):
                    return view
        raise AssertionError(f"job {job} ended before: {view.phase} ({view.summary})")

    async def until_states(self, job: str, *states: State) -> JobView:
        """The first view of a job whose executions are in these states, by rank."""
        return await self.until(job, lambda view: states_of(view) == states)

    async def printed(self, job: str, lines: int) -> list[LogLine]:
        """The first lines of a job, once there are so many."""
        found: list[LogLine] = []
        async with aclosing(self.client.jobs.logs(job, follow=True)) as log:
            async for line in log:
                found.append(line)
                if len(found) == lines:
                    return found
        raise AssertionError(f"job {job} printed only {len(found)} lines: {found}")

    async def tell(self, fifo: Path) -> None:
        """Let user code go on that reads a line from a FIFO, or will."""
        await asyncio.to_thread(fifo.write_text, "go\n")

    async def output(self, job: str, **wish: Any) -> list[LogLine]:
        """What a job printed."""
        return [line async for line in self.client.jobs.logs(job, **wish)]

    async def texts(self, job: str, **wish: object) -> list[str]:
        """The lines that a job printed, with the rank in front."""
        return [f"{line.rank} {line.text.decode()}" for line in await self.output(job, **wish)]


@asynccontextmanager
async def running_fleet(directory: Path, *nodes: str) -> AsyncIterator[Fleet]:
    """A coordinator with these nodes; when it ends, nothing may be left of it and nothing gone wrong unnoticed."""
    before = asyncio.all_tasks()
    journal = Journal()
    journal.start()
    try:
        async with asyncio.TaskGroup() as tasks:
            fleet = Fleet(directory, tasks, journal)
            await fleet.start_coordinator()
            try:
                async with Client(fleet.address, SHOWN) as fleet.client:
                    await fleet.start_agents(*nodes)
                    yield fleet
            finally:
                await fleet.close()
        gc.collect()  # a task that was forgotten is reported when it is destroyed
        await _settled(asyncio.all_tasks() - before)
        assert not _open_files(directory), f"files are still open: {_open_files(directory)}"
        assert not journal.errors(), f"errors were logged: {journal.errors()}"
    finally:
        journal.stop()


def executions(job: JobView) -> tuple[ExecutionView, ...]:
    """The executions of the newest attempt, by rank."""
    return job.attempts[-1].executions


def states_of(job: JobView) -> tuple[State, ...]:
    """The states of the newest attempt, by rank."""
    return tuple(execution.state for execution in executions(job))


def python(code: str) -> tuple[str, ...]:
    """A command that runs Python code, quickly."""
    return (sys.executable, "-I", "-S", "-c", code)


async def _cancelled() -> None:
    """Wait for one's task to be cancelled, and go on."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        task = asyncio.current_task()
        assert task is not None
        task.uncancel()


async def _end(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.wait([task])


def _open_files(directory: Path) -> list[Path]:
    """What this process holds open of a directory."""
    found: list[Path] = []
    for each in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # closed since it was listed
            found.append(each.resolve())
    return sorted(path for path in found if directory in path.parents)


async def _settled(left: set["asyncio.Task[object]"]) -> None:
    """Nothing works on: gRPC's iterators of requests end themselves when they are collected, nothing else may do so."""
    if left:
        _, pending = await asyncio.wait(left, timeout=SETTLED_WITHIN)
        assert not pending, f"tasks are left: {pending}"
