"""The agent's way to the mover of images, which is there while images are pulled."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.data.layers.messages import LayerAsk, PullWanted, wanted_said
from agent.data.mover.mover import Mover
from muster.daemon.own_programs import command_of
from muster.domain.data.swarm import ContentSpan
from muster.domain.data.tree import ContentObject
from muster.domain.errors import MusterError
from muster.domain.jobs.failure import ExecutionError
from muster.transfer.bucket_faults import BucketAwayError, BucketRefusedError

LOOPBACK_OPENS = 45.0
"""Seconds in which a registry must have said what an image consists of; else the engine asks it itself."""


LAYER_PART_LIMIT = 600.0
"""Seconds for a part of a layer from a registry."""


class NoLoopbackError(MusterError):
    """An image does not come through this node; says why."""


class RegistryAwayError(NoLoopbackError):
    """A registry has no answer now."""


@dataclass(slots=True, kw_only=True)
class OpenedPull:
    """An image that the engine may pull from the mover."""

    name: str
    """What the engine is to pull."""
    user: str
    password: str = field(repr=False)
    digest: str
    blobs: tuple[ContentObject, ...]
    """The configuration and the layers for this processor."""
    given: int | None = None
    """Bytes that the engine was given, once it is over; None: the mover has died meanwhile."""
    is_reached: bool = True
    """Whether the engine has found the way to the mover."""
    fault: str = ""
    """Why something of it cannot be had."""


class LayerMover:
    """Lets the engine of one node pull images through this node."""

    def __init__(self, directory: Path, keep_free: int, mover: Mover | None = None) -> None:
        """`directory`: of the layers; `keep_free`: percent of the file system; `mover`: None means ours."""
        self.directory = directory
        self._keep_free = keep_free
        self._mover = mover or Mover(command_of("agent.data.layers.program"))

    @asynccontextmanager
    async def opened(self, wanted: PullWanted) -> AsyncIterator[OpenedPull]:
        """An image that may be pulled until the end of this. Raises NoLoopbackError."""
        async with self._mover.needed():
            about = {"directory": str(self.directory), "keep_free": self._keep_free}
            said = await self._asked({"ask": LayerAsk.OPEN, **about, **wanted_said(wanted)})
            pull = OpenedPull(
                name=said["name"],
                user=said["user"],
                password=said["password"],
                digest=said["digest"],
                blobs=tuple(ContentObject(digest=digest, size=size) for digest, size in said["blobs"]),
            )
            try:
                yield pull
            finally:
                with suppress(NoLoopbackError):
                    ended = await self._asked({"ask": LayerAsk.CLOSE, "user": pull.user})
                    pull.given, pull.fault = ended.get("given"), ended.get("refused", "")
                    pull.is_reached = ended.get("reached", True)

    async def share(self, pull: OpenedPull, smallest: int) -> None:
        """Tell what the engine wants of a pull from now on, but for blobs with fewer bytes; raises NoLoopbackError."""
        await self._asked({"ask": LayerAsk.SHARE, "user": pull.user, "smallest": smallest})

    async def wanted(self, pull: OpenedPull) -> AsyncIterator[ContentObject]:
        """Blobs that the engine asks for, each once, until the pull is over; raises NoLoopbackError."""
        while said := await self._asked({"ask": LayerAsk.WANTED, "user": pull.user}, within=None):
            if "blob" not in said:
                return
            digest, size = said["blob"]
            yield ContentObject(digest=digest, size=size)

    async def there(self, pull: OpenedPull, digest: str, path: Path, count: int) -> None:
        """Tell that so many bytes of a blob are in a file, from its beginning; raises NoLoopbackError."""
        about = {"user": pull.user, "digest": digest, "path": str(path), "count": count}
        await self._asked({"ask": LayerAsk.THERE, **about})

    async def leave(self, pull: OpenedPull, digest: str) -> None:
        """Tell that the agent has no more of a blob come; what is kept counts. Raises NoLoopbackError."""
        await self._asked({"ask": LayerAsk.LEAVE, "user": pull.user, "digest": digest})

    async def read(self, pull: OpenedPull, spans: Sequence[ContentSpan], into: Path) -> None:
        """Have parts of blobs one after the other in a file that is there.

        Raises RegistryAwayError, or another NoLoopbackError.
        """
        parts = [[each.digest, each.offset, each.offset + each.length] for each in spans]
        question = {"ask": LayerAsk.READ, "user": pull.user, "parts": parts, "into": str(into)}
        await self._asked(question, within=LAYER_PART_LIMIT)

    async def _asked(self, question: Mapping[str, Any], within: float | None = LOOPBACK_OPENS) -> Mapping[str, Any]:
        try:
            async with asyncio.timeout(within):
                return await self._mover.asked(question, lambda _: None)
        except TimeoutError:
            raise RegistryAwayError(f"nothing was heard for {within:.0f} s") from None
        except BucketAwayError as error:
            raise RegistryAwayError(str(error)) from None
        except (BucketRefusedError, ExecutionError, OSError) as error:
            raise NoLoopbackError(str(error)) from None
