"""The way of one node into swarms: who the others are, what it gathers with them, and what it keeps for them."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from agent.swarm.asking import PEER_BEGINS, AskedSwarm, PeerLine
from agent.swarm.gathering import GatheredContents, PieceOrigin
from agent.swarm.parts import ContentParts
from agent.swarm.shelf import SwarmAccess
from muster.domain.data.sharing.swarm_pass import SwarmMember
from muster.domain.data.swarm import Swarm
from muster.domain.data.tree import ContentObject
from muster.domain.gangs.plan import Assignment
from muster.domain.jobs.failure import ExecutionError
from muster.domain.quantity import size_text
from muster.transfer.objects import WrongContentError

log = logging.getLogger(__name__)


async def joined_swarm(
    access: SwarmAccess, assignment: Assignment, wanted: str, begins: float = PEER_BEGINS
) -> "JoinedSwarm | None":
    """The swarm of an attempt for something that it wants; None: this node fetches that alone.

    `begins`: seconds in which another node must have begun with it.
    """
    if assignment.node_count < 2:  # noqa: PLR2004 - there is no other node
        return None
    try:
        given = await access.ask(assignment.execution, wanted)
    except ExecutionError as error:
        log.info("no swarm", extra={"execution": assignment.execution, "cause": str(error)})
        return None
    others = [each for each in given.members if each.node != access.node]
    if not others or len(others) == len(given.members) or not given.key:
        return None
    return JoinedSwarm(access, assignment, given.key, others, begins)


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedContents:
    """Objects whose names are the hashes of what they hold, and where they lie on a node."""

    objects: Sequence[ContentObject]
    directory: Path
    """Pieces lie below it while they come."""
    whole: Callable[[str], Path | None]
    """Where an object is; None: it is not here. May block, and raises OSError."""
    keep: Callable[[str, Path], Path]
    """Takes the file of an object that has come, and says where it is then. The same."""


async def shared_objects(
    access: SwarmAccess,
    assignment: Assignment,
    wanted: str,
    contents: WantedContents,
    origin: AbstractAsyncContextManager[PieceOrigin] | None,
    told: Callable[[str, int], None],
) -> bool:
    """Have objects here with the other nodes of an attempt that want them; False: what is not here, is to be fetched.

    Those that are all here are found by the others from now on, until the execution is over. `told` hears how far it
    is, in words and in bytes. With no `origin` nothing is fetched. Raises OriginAwayError, OSError, WrongContentError,
    or what the origin raises.
    """
    swarm = await joined_swarm(access, assignment, wanted)
    if swarm is None:
        return False
    objects = contents.objects
    parts = await swarm.parts(contents.directory, objects, contents.whole)
    if parts.all_kept or origin is None:
        swarm.offer(objects, parts)
        return False
    async with origin as opened:
        await swarm.gather_objects(
            objects,
            parts,
            opened,
            lambda there, from_peers: told(progress_text(there, parts.pieces.total, from_peers), there),
            contents.keep,
        )
    return True


class JoinedSwarm:
    """A swarm that a node belongs to."""

    def __init__(
        self,
        access: SwarmAccess,
        assignment: Assignment,
        key: bytes,
        others: Sequence[SwarmMember],
        begins: float = PEER_BEGINS,
    ) -> None:
        self._access = access
        self._execution = assignment.execution
        self._attempt = assignment.attempt_id
        self._key = key
        self._others = others
        self._begins = begins

    async def parts(
        self,
        directory: Path,
        objects: Sequence[ContentObject],
        whole: Callable[[str], Path | None],
        hashes: Mapping[str, str] | None = None,
    ) -> ContentParts:
        """What is here of some contents, whose pieces lie below a directory while they come; raises OSError."""
        place = directory / f"{contents_name(objects)}.pieces"
        return await asyncio.to_thread(ContentParts, place, objects, whole, hashes)

    def offer(self, objects: Sequence[ContentObject], parts: ContentParts) -> GatheredContents:
        """Contents as the other nodes find them here from now on, until the execution is over."""
        name = contents_name(objects)
        nodes = [each.node for each in self._others]
        gathered = GatheredContents(parts, Swarm(name, [*nodes, self._access.node]), self._access.node)
        self._access.shelf.offer(self._attempt, name, self._key, gathered, self._execution)
        return gathered

    async def gather(
        self,
        objects: Sequence[ContentObject],
        parts: ContentParts,
        origin: PieceOrigin,
        told: Callable[[int, int], None],
    ) -> GatheredContents:
        """Have all contents here, which the others find as they come, and what is known of their hashes compared.

        Raises OriginAwayError, OSError or what the origin raises.
        """
        gathered, name = self.offer(objects, parts), contents_name(objects)
        asked = AskedSwarm(attempt=self._attempt, contents=name, key=self._key, begins=self._begins)
        lines = [PeerLine(self._access.node, each, self._access.shown, asked) for each in self._others]
        await gathered.gather(origin, lines, told)
        await gathered.repair(origin)
        return gathered

    async def gather_objects(
        self,
        objects: Sequence[ContentObject],
        parts: ContentParts,
        origin: PieceOrigin,
        told: Callable[[int, int], None],
        keep: Callable[[str, Path], Path],
    ) -> None:
        """Have all contents here, each object with whoever keeps it; raises as above, and WrongContentError."""
        gathered = await self.gather(objects, parts, origin, told)
        if wrong := await asyncio.to_thread(parts.wrong):
            await asyncio.to_thread(parts.forget, range(parts.pieces.count))
            raise WrongContentError(f"what came as {wrong[0]} holds something else, from its origin, too")
        await asyncio.to_thread(parts.settle, keep)
        about = {"execution": self._execution, "bytes": parts.pieces.total, "from_peers": gathered.from_peers}
        log.info("objects gathered", extra=about)


def contents_name(objects: Sequence[ContentObject]) -> str:
    """The name of some contents, which all nodes give them that have the same."""
    found = sha256()
    for each in objects:
        found.update(f"{each.digest} {each.size}\n".encode())
    return found.hexdigest()


def progress_text(there: int, total: int, from_peers: int) -> str:
    """How far it is, and how much of that other nodes gave."""
    shared = f", {size_text(from_peers)} from other nodes" if from_peers else ""
    return f"{size_text(there)} of {size_text(total)}{shared}"
