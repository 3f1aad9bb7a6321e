"""Nodes that fetch the same input, each with a cache and a port for the others; only the coordinator is not there."""

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from agent.data.agreed import AskForKeys
from agent.data.bucket_inputs import BucketSide
from agent.data.cache import InputCache
from agent.data.fetching import InputFetching
from agent.data.held import HeldInput
from agent.data.mover.mover import Mover
from agent.data.store import no_keys
from agent.fencing.peer_server import GivenToPeers, answering
from agent.swarm.serving import PiecesForPeers
from agent.swarm.shelf import PeerRate, PieceShelf, SwarmAccess
from muster.domain.data.checkpoint import CheckpointToRestore
from muster.domain.data.job_input import FoundInput, JobInput
from muster.domain.data.sharing.swarm_pass import SwarmMember, SwarmPass
from muster.domain.gangs.fence import PeerWord
from muster.domain.gangs.plan import Assignment
from muster.domain.ids import AttemptId, ExecutionId, JobId, NodeId
from muster.domain.jobs.job import Network, Role
from muster.rpc.channel import NOTHING

KEY = b"k" * 32
LOCALHOST = "127.0.0.1"


class NoFence:
    """A node that no attempt asks whether the coordinator is away."""

    def secret(self, attempt: AttemptId) -> bytes | None:
        del attempt
        return None

    def answer(self, attempt: AttemptId) -> PeerWord:
        del attempt
        return PeerWord.OVER


@dataclass
class Gang:
    """What the coordinator knows of one attempt."""

    members: list[SwarmMember] = field(default_factory=list)
    noted: dict[str, FoundInput] = field(default_factory=dict)
    keys: AskForKeys = no_keys
    """What opens stores."""
    mover: Mover = field(default_factory=Mover)
    """One for all nodes: a program is started once."""

    async def swarm(self, execution: ExecutionId, wanted: str) -> SwarmPass:
        del execution, wanted
        return SwarmPass(key=KEY, members=tuple(self.members))

    async def told(
        self, execution: ExecutionId, found: Sequence[FoundInput], asked: Sequence[str]
    ) -> Sequence[FoundInput]:
        del execution
        for each in found:
            self.noted.setdefault(each.url, each)
        return tuple(self.noted[url] for url in asked if url in self.noted)


class GangNode:
    """One node of the gang."""

    def __init__(self, name: str, directory: Path, gang: Gang) -> None:
        self.name = NodeId(name)
        self._directory = directory / name
        (self._directory / "executions" / name).mkdir(parents=True)
        self.gang = gang
        self.shelf = PieceShelf()
        self.pieces = PiecesForPeers(self.name, self.shelf, PeerRate(None))
        self.access = SwarmAccess(node=self.name, ask=gang.swarm, shelf=self.shelf, shown=lambda: NOTHING)
        self.cache = InputCache(self._directory / "inputs", self._directory / "executions", keep_free=0)
        buckets = BucketSide(keys=gang.keys, tell=gang.told, mover=gang.mover)
        self._fetching = InputFetching(self.cache, gang.told, gang.keys, buckets=buckets, swarms=self.access)
        self.said: list[str] = []
        """What people are told meanwhile."""
        self._served = AsyncExitStack()

    async def answer(self) -> None:
        """Answer the others from here on."""
        served = answering(self.name, NoFence(), LOCALHOST, 0, given=GivenToPeers(pieces=self.pieces))
        port = await self._served.enter_async_context(served)
        self.gang.members.append(SwarmMember(node=self.name, address=f"{LOCALHOST}:{port}"))

    async def fall_silent(self) -> None:
        """Answer nobody any more."""
        await self._served.aclose()

    async def fetch(self, given: JobInput, heard: Callable[[str], None] = lambda _: None) -> bytes:
        """What the files of an input hold here, in the order of their names."""

        def progress(detail: str) -> None:
            self.said.append(detail)
            heard(detail)

        held: Collection[HeldInput] = (
            await self._fetching.fetch(self.assignment(Role(command=("x",), inputs=(given,))), progress)
        ).values()
        [directory] = [each.directory for each in held]
        return b"".join(path.read_bytes() for path in sorted(directory.iterdir()))

    def assignment(self, role: Role, restore: CheckpointToRestore | None = None) -> Assignment:
        """An execution of a role on this node."""
        return Assignment(
            execution=ExecutionId(self.name),
            job=JobId("j"),
            job_name="j",
            attempt=1,
            rank=0,
            world_size=3,
            local_rank=0,
            local_world_size=1,
            node_rank=0,
            node_count=3,
            network=Network.HOST,
            role=role,
            restore=restore,
            stall=timedelta(seconds=20),
        )


@asynccontextmanager
async def gang_of(
    directory: Path, *names: str, later: str = "", keys: AskForKeys = no_keys
) -> AsyncIterator[list[GangNode]]:
    """Nodes of one gang that all answer, but one that comes later."""
    gang = Gang(keys=keys)
    nodes = [GangNode(name, directory, gang) for name in names]
    async with AsyncExitStack() as stack:
        for node in nodes:
            if node.name != later:
                await node.answer()
            stack.push_async_callback(node.fall_silent)
        yield nodes
