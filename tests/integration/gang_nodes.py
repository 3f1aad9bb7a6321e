"""Nodes of a gang as far as commands between them go: doors, companions, peer ports, and nothing beside them."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from agent.attach.companion import Companion
from agent.attach.door import ExecutionDoor
from agent.attach.for_peers import MOST_COMMANDS_FOR_OTHERS, CommandsForPeers
from agent.attach.gang_commands import CommandsInGangs
from agent.attach.line import ready
from agent.attach.local_commands import LocalCommands
from agent.core.door.gang_rules import GangPart
from agent.core.door.packets import GangCommandAsked, GangInput, GangInputEnd, GangSignal, Targets
from agent.executions.layout import ExecutionDirectory
from agent.fencing.peer_server import GivenToPeers, answering
from agent.logs.mask import MASK_NOTHING, Mask
from agent.logs.spool import LogSpool
from agent.runtimes.kernel.subtree import descendants, strike
from muster.domain.attachments.frame import AttachmentFrame
from muster.domain.gangs.log import parse_records
from muster.domain.gangs.roster import Member, Roster
from muster.domain.ids import AttemptId, ExecutionId, NodeId, execution_id
from muster.domain.jobs.job import Network
from muster.rpc.channel import Credentials
from tests.contract.door_side import TICKET, program
from tests.integration.attempt_part import ATTEMPT, SECRET, Part
from tests.integration.peer_certificates import shown_by

LOCALHOST = "127.0.0.1"

LIMIT = 60.0
"""Seconds that a test with such nodes may take."""


@dataclass
class Site:
    """What a node knows of its executions."""

    gang: GangPart | None = None
    ranks: dict[ExecutionId, int] = field(default_factory=dict)
    companions: dict[ExecutionId, Companion] = field(default_factory=dict)
    spools: dict[ExecutionId, LogSpool] = field(default_factory=dict)
    masked: Mask = MASK_NOTHING

    def part(self, attempt: AttemptId) -> GangPart | None:
        return self.gang if self.gang is not None and self.gang.attempt == attempt else None

    def place(self, execution: ExecutionId) -> tuple[GangPart, int] | None:
        return None if self.gang is None else (self.gang, self.ranks[execution])

    def companion(self, execution: ExecutionId) -> Companion | None:
        return self.companions.get(execution)

    def spool(self, execution: ExecutionId) -> LogSpool | None:
        return self.spools.get(execution)

    def mask(self, execution: ExecutionId) -> Mask:
        del execution
        return self.masked


class NamedPipe:
    """A pipe by which a test and a command tell each other something; it never ends."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = path
        self._end = os.open(path, os.O_RDWR | os.O_NONBLOCK)

    def tell(self) -> None:
        """Give a line to a command that waits for one."""
        os.write(self._end, b"go\n")

    async def line(self) -> bytes:
        """What a command tells."""
        await ready(self._end, asyncio.get_running_loop().add_reader)
        return os.read(self._end, 4096)

    def close(self) -> None:
        """Let go of it."""
        os.close(self._end)


class HeldCaller:
    """A caller in this process, which keeps what it is told."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.printed = bytearray()
        self.errors = bytearray()
        self.says: asyncio.Queue[GangInput | GangInputEnd | GangSignal] = asyncio.Queue()
        self._more = asyncio.Event()

    async def begun(self) -> None:
        self.began.set()

    async def output(self, data: bytes) -> None:
        self.printed += data
        self._more.set()

    async def error_output(self, data: bytes) -> None:
        self.errors += data

    async def heard(self) -> GangInput | GangInputEnd | GangSignal:
        return await self.says.get()

    async def until_printed(self, text: bytes) -> None:
        while text not in self.printed:
            self._more.clear()
            await self._more.wait()


class HeldStream:
    """The stream of a call in this process."""

    def __init__(self, *says: AttachmentFrame) -> None:
        self.says: asyncio.Queue[AttachmentFrame | None] = asyncio.Queue()
        self.told: asyncio.Queue[AttachmentFrame] = asyncio.Queue()
        for frame in says:
            self.says.put_nowait(frame)

    async def read(self) -> AttachmentFrame | None:
        return await self.says.get()

    async def write(self, frame: AttachmentFrame) -> None:
        self.told.put_nowait(frame)


class GangNode:
    """One node with its executions."""

    def __init__(self, root: Path, name: str, ranks: Sequence[int], shown: Credentials, most_commands: int) -> None:
        self.name = NodeId(name)
        self.ranks = tuple(ranks)
        self.shown = shown
        self.site = Site()
        self.local = LocalCommands(self.site)
        self.commands = CommandsInGangs(self.name, self.site, self.local, lambda: self.shown)
        self.for_peers = CommandsForPeers(self.name, self.site, self.local, most_commands)
        self.port = 0
        self._root = root / name
        self._answering = AsyncExitStack()

    def lose_patience(self) -> None:
        """Try nothing again from here on."""
        self.commands = CommandsInGangs(self.name, self.site, self.local, lambda: self.shown, patience=0)

    def execution(self, rank: int) -> ExecutionId:
        return execution_id(*ATTEMPT, rank)

    def directory(self, rank: int) -> ExecutionDirectory:
        return ExecutionDirectory(self._root, self.execution(rank))

    async def answer(self) -> None:
        """Answer peers from here on."""
        served = answering(
            self.name, Part(), LOCALHOST, self.port, lambda: self.shown, GivenToPeers(commands=self.for_peers)
        )
        self.port = await self._answering.enter_async_context(served)

    async def fall_silent(self) -> None:
        """Answer no peers any more; what they are being answered ends."""
        await self._answering.aclose()

    @asynccontextmanager
    async def executions(self) -> AsyncIterator[None]:
        """The doors of its executions, with a companion behind each."""
        async with AsyncExitStack() as stack:
            for rank in self.ranks:
                directory, execution = self.directory(rank), self.execution(rank)
                directory.config.mkdir(parents=True)
                self.site.ranks[execution] = rank
                self.site.spools[execution] = stack.enter_context(closing(LogSpool(directory.log)))
            stack.push_async_callback(self.local.close)
            for rank in self.ranks:
                door = ExecutionDoor(self.directory(rank), TICKET, self.commands)
                self.site.companions[self.execution(rank)] = door.companion
                await stack.enter_async_context(_served(door))
                stack.callback(_companion(self.directory(rank)))
            yield

    async def run(self, caller: HeldCaller, to: str, *words: str) -> int:
        """The exit code of what its first execution runs in one other, without input."""
        return await self.ask(caller, GangCommandAsked(targets=Targets.ONE, target=to, words=words))

    async def ask(self, caller: HeldCaller, command: GangCommandAsked) -> int:
        """The exit code of what its first execution runs elsewhere."""
        return await self.commands.run(self.execution(self.ranks[0]), command, caller)

    async def call(self, name: str, *words: str, stdin: int = subprocess.DEVNULL) -> asyncio.subprocess.Process:
        """Start one of the programs of callers in its first execution."""
        directory = self.directory(self.ranks[0])
        return await asyncio.create_subprocess_exec(
            _named(directory, name),
            *words,
            env={"MUSTER_DOOR": str(directory.door)},
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def log(self, rank: int) -> list[str]:
        """The lines in the log of an execution."""
        spool = self.site.spools[self.execution(rank)]
        spool.look()
        return [record.text.decode() for record in parse_records(spool.read(0, spool.size))]

    async def until_logged(self, rank: int, text: str) -> None:
        """Wait until a line is in the log of an execution."""
        spool = self.site.spools[self.execution(rank)]
        while text not in self.log(rank):
            spool.grew.clear()
            await spool.grew.wait()


@asynccontextmanager
async def gang(
    root: Path,
    shown: Callable[[NodeId], Credentials],
    most_commands: int = MOST_COMMANDS_FOR_OTHERS,
    **ranks: Sequence[int],
) -> AsyncIterator[Mapping[str, GangNode]]:
    """Nodes by name, each with the executions of these ranks; all are told of all."""
    nodes = {name: GangNode(root, name, of, shown(NodeId(name)), most_commands) for name, of in ranks.items()}
    async with AsyncExitStack() as stack:
        for node in nodes.values():
            await stack.enter_async_context(node.executions())
            await node.answer()
            stack.push_async_callback(node.fall_silent)
        roster = roster_of(nodes.values())
        for node in nodes.values():
            running = {rank: node.execution(rank) for rank in node.ranks}
            node.site.gang = GangPart(attempt=ATTEMPT, secret=SECRET, roster=roster, running=running)
        yield nodes


@asynccontextmanager
async def three(root: Path) -> AsyncIterator[Mapping[str, GangNode]]:
    """Node a with rank 0, node b with ranks 1 and 2."""
    async with asyncio.timeout(LIMIT), gang(root, shown_by, a=[0], b=[1, 2]) as nodes:
        yield nodes


def roster_of(nodes: Iterable[GangNode]) -> Roster:
    """All members, at the ports where their nodes answer now."""
    members = [
        Member(
            rank=rank,
            execution=node.execution(rank),
            role="worker",
            node=node.name,
            address=LOCALHOST,
            checked_in_at=datetime(2026, 11, 23, tzinfo=UTC),
            peer_port=node.port,
        )
        for node in nodes
        for rank in node.ranks
    ]
    members.sort(key=lambda member: member.rank)
    return Roster.of(job=ATTEMPT.job, job_name="train", attempt=ATTEMPT.number, network=Network.HOST, members=members)


@asynccontextmanager
async def _served(door: ExecutionDoor) -> AsyncIterator[None]:
    door.open()
    serving = asyncio.create_task(door.serve())
    try:
        yield
    finally:
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving
        door.close()


def _companion(directory: ExecutionDirectory) -> Callable[[], None]:
    """Start a companion; what ends it, with all that it started."""
    variables = {"PATH": os.defpath, "MUSTER_TICKET": TICKET}
    companion = subprocess.Popen((_named(directory, "muster-inside"), "stay", str(directory.door)), env=variables)

    def end() -> None:
        strike(partial(descendants, companion.pid))
        companion.kill()
        companion.wait()

    return end


def _named(directory: ExecutionDirectory, name: str) -> str:
    path = directory.path / name
    if not path.exists():
        shutil.copy(program(), path)
    return str(path)
