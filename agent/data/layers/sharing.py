"""Layers that the nodes of an attempt pull at the same time: each node takes a share, and the nodes give the rest."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

from agent.data.layers.files import LayerFiles
from agent.data.layers.mover import LayerMover, NoLoopbackError, OpenedPull, RegistryAwayError
from agent.swarm.gathering import ORIGIN_LANES, OriginAwayError, Write
from agent.swarm.parts import ContentParts
from agent.swarm.shelf import SwarmAccess
from agent.swarm.side import JoinedSwarm, joined_swarm
from muster.domain.data.swarm import ContentSpan
from muster.domain.data.tree import ContentObject
from muster.domain.errors import MusterError
from muster.domain.gangs.plan import Assignment
from muster.domain.jobs.image import shared_as

log = logging.getLogger(__name__)

SMALLEST_SHARED_LAYER = 1024 * 1024
"""Bytes of the smallest layer that nodes give to each other; a smaller one each node fetches by itself."""
LAYER_BEGINS = 3.0
"""Seconds in which another node must have begun with the same layer; one whose engine has it never does."""

_READ = 1024 * 1024


class SharedLayers:
    """The layers that one node has in common with other nodes."""

    def __init__(self, access: SwarmAccess, mover: LayerMover) -> None:
        self._access = access
        self._mover = mover
        self._coming: dict[str, asyncio.Task[None]] = {}
        """Layers that come now, by digest: each once for a node."""

    @asynccontextmanager
    async def sharing(
        self, pull: OpenedPull, assignment: Assignment, told: Callable[[int], None]
    ) -> AsyncIterator[None]:
        """Have what the engine wants of a pull come with the other nodes, until the end of this.

        `told` hears how many bytes of it other nodes have given. Raises NoLoopbackError.
        """
        swarm = None
        if any(each.size >= SMALLEST_SHARED_LAYER for each in pull.blobs):
            swarm = await joined_swarm(
                self._access, assignment, shared_as(assignment.role.image or ""), begins=LAYER_BEGINS
            )
        if swarm is None:
            yield
            return
        await self._mover.share(pull, SMALLEST_SHARED_LAYER)
        work = _SharedPull(self._mover, pull, swarm, told)
        following = asyncio.create_task(self._follow(work), name="layers that the engine wants")
        try:
            yield
            await self._settled(work)
        finally:
            following.cancel()
            for task in work.tasks:
                task.cancel()
            await asyncio.wait([following, *work.tasks])

    async def _settled(self, work: "_SharedPull") -> None:
        """Wait until what has come is where it stays."""
        if work.tasks:
            await asyncio.wait(work.tasks)

    async def _follow(self, work: "_SharedPull") -> None:
        """Begin with each layer that the engine asks for."""
        with suppress(NoLoopbackError):  # the pull fails then
            async for blob in self._mover.wanted(work.pull):
                work.tasks.append(asyncio.create_task(self._come(work, blob), name="a layer"))

    async def _come(self, work: "_SharedPull", blob: ContentObject) -> None:
        """Have a layer here, or leave it to the registry. No error leaves this."""
        try:
            if (other := self._coming.get(blob.digest)) is not None:
                await asyncio.wait([other])
            else:
                self._coming[blob.digest] = coming = asyncio.create_task(work.gather(blob), name="pieces of a layer")
                try:
                    await coming
                finally:
                    coming.cancel()
                    del self._coming[blob.digest]
        except (MusterError, OSError) as error:
            log.info("a layer is not shared", extra={"blob": blob.digest, "cause": str(error)})
        finally:
            with suppress(NoLoopbackError):
                await self._mover.leave(work.pull, blob.digest)


class _SharedPull:
    """One pull whose layers come with other nodes."""

    def __init__(self, mover: LayerMover, pull: OpenedPull, swarm: JoinedSwarm, told: Callable[[int], None]) -> None:
        self.pull = pull
        self.tasks: list[asyncio.Task[None]] = []
        self._mover = mover
        self._swarm = swarm
        self._told = told
        self._from_peers: dict[str, int] = {}

    async def gather(self, blob: ContentObject) -> None:
        """Have a layer here with the other nodes, who find it here then. Raises MusterError or OSError."""
        files = await asyncio.to_thread(LayerFiles, self._mover.directory)
        parts = await self._swarm.parts(self._mover.directory / "parts", [blob], files.kept)
        if parts.all_kept:
            self._swarm.offer([blob], parts)
            return
        changed = asyncio.Event()

        def told(there: int, from_peers: int) -> None:
            del there
            self._from_peers[blob.digest] = from_peers
            self._told(sum(self._from_peers.values()))
            changed.set()

        telling = asyncio.create_task(self._tell(blob, parts, changed), name="how far a layer is")
        try:
            origin = RegistryOrigin(self._mover, self.pull, parts.place)
            await self._swarm.gather_objects([blob], parts, origin, told, files.keep_gathered)
        finally:
            telling.cancel()
            await asyncio.wait([telling])

    async def _tell(self, blob: ContentObject, parts: ContentParts, changed: asyncio.Event) -> None:
        """Tell the mover how much of a layer is there from its beginning, whenever that becomes more."""
        ends = [span.offset + span.length for piece in range(parts.pieces.count) for span in parts.pieces.spans(piece)]
        piece = 0
        with suppress(NoLoopbackError):
            while True:
                before = piece
                while piece < len(ends) and piece in parts.here:
                    piece += 1
                if piece > before:
                    await self._mover.there(self.pull, blob.digest, parts.path(blob.digest), ends[piece - 1])
                await changed.wait()
                changed.clear()


class RegistryOrigin:
    """The registry of an image, which the mover asks for parts of its layers."""

    lanes = ORIGIN_LANES

    def __init__(self, mover: LayerMover, pull: OpenedPull, place: Path) -> None:
        """`place`: a directory for what the mover has just read."""
        self._mover = mover
        self._pull = pull
        self._place = place

    async def fetch(self, spans: Sequence[ContentSpan], write: Write) -> None:
        """Have parts of layers written. Raises OriginAwayError, NoLoopbackError or OSError."""
        with closing(await asyncio.to_thread(lambda: NamedTemporaryFile(dir=self._place))) as file:
            try:
                await self._mover.read(self._pull, spans, Path(file.name))
            except RegistryAwayError as error:
                raise OriginAwayError(str(error)) from None
            while data := await asyncio.to_thread(file.read, _READ):
                await write(data)
