"""The agent's way to the mover of images, which is there while images are pulled."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.data.layers.messages import LayerAsk, PullWanted, wanted_said
from agent.data.mover.mover import Mover
from muster.daemon.own_programs import command_of
from muster.domain.data.tree import ContentObject
from muster.domain.errors import MusterError
from muster.domain.jobs.failure import ExecutionError
from muster.transfer.bucket_faults import BucketAwayError, BucketRefusedError

LOOPBACK_OPENS = 45.0
"""Seconds in which a registry must have said what an image consists of; else the engine asks it itself."""


class NoLoopbackError(MusterError):
    """An image does not come through this node; says why."""


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
        self._about = {"directory": str(directory), "keep_free": keep_free}
        self._mover = mover or Mover(command_of("agent.data.layers.program"))

    @asynccontextmanager
    async def opened(self, wanted: PullWanted) -> AsyncIterator[OpenedPull]:
        """An image that may be pulled until the end of this. Raises NoLoopbackError."""
        async with self._mover.needed():
            said = await self._asked({"ask": LayerAsk.OPEN, **self._about, **wanted_said(wanted)})
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

    async def _asked(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            async with asyncio.timeout(LOOPBACK_OPENS):
                return await self._mover.asked(question, lambda _: None)
        except TimeoutError:
            raise NoLoopbackError(f"nothing was heard for {LOOPBACK_OPENS:.0f} s") from None
        except (BucketRefusedError, BucketAwayError, ExecutionError, OSError) as error:
            raise NoLoopbackError(str(error)) from None
