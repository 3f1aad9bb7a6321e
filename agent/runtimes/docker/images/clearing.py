"""Removes images that the agent has pulled and nobody uses: where too little of the disk is free, or on an order."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from agent.runtimes.docker.engine.connection import EngineAwayError, EngineError
from agent.runtimes.docker.engine.engine import DockerEngine
from agent.runtimes.docker.images.pulled import PulledImage, PulledImages, is_meant, may_go
from muster.domain.data.kept.image import MOST_NAMES_TOLD, ClearOutcome, ImageFate, ToldImage
from muster.domain.jobs.image import without_tag

log = logging.getLogger(__name__)

DEFAULT_IMAGES_KEEP_FREE = 10
"""Percent of the file system with the images below which images go."""

CLEARANCE_TIME = 20.0
"""Seconds after which an order to clear images begins with no further one."""


class ImageClearing:
    """Takes images away that the agent has pulled, and tells which there are."""

    def __init__(
        self,
        engine: DockerEngine,
        pulled: PulledImages,
        held: Callable[[], Iterable[str]],
        keep_free: int = DEFAULT_IMAGES_KEEP_FREE,
        disk: Callable[[Path], os.statvfs_result] = os.statvfs,
        goes_first: Callable[[Path, int], int] | None = None,
    ) -> None:
        """`held`: the images with which something is prepared, though perhaps no container has them yet.

        `goes_first` removes so many bytes of something else that is kept beside the images.
        """
        self._engine = engine
        self._pulled = pulled
        self._held = held
        self._keep_free = keep_free
        self._disk = disk
        self._goes_first = goes_first
        self._lock = asyncio.Lock()
        self._removing = asyncio.Lock()
        """Held from the look whether an image is used until it is gone."""
        self._coming: list[str] = []
        """Repositories of the images with which something is just being prepared."""

    @property
    def revision(self) -> int:
        """Counts up whenever there is something to tell of them."""
        return self._pulled.revision

    def told(self) -> Sequence[ToldImage]:
        """The images that the agent has pulled, the one that was used last first."""
        last_first = sorted(self._pulled.all(), key=lambda each: each.used_at, reverse=True)
        return [
            ToldImage(
                id=each.id,
                names=each.names[-MOST_NAMES_TOLD:],
                bytes=each.bytes,
                used_at=datetime.fromtimestamp(max(0.0, each.used_at), UTC),
            )
            for each in last_first
        ]

    @asynccontextmanager
    async def preparing(self, image: str | None) -> AsyncIterator[None]:
        """While something is prepared with an image, none of its repository is taken away."""
        repository = without_tag(image or "")
        self._coming.append(repository)
        try:
            async with self._removing:
                pass  # what is just being removed is not found any more
            yield
        finally:
            self._coming.remove(repository)

    async def clear(self, root: Path) -> None:
        """Remove what may go until enough is free at `root`, or nothing more can go. What the engine refuses stays."""
        if not await asyncio.to_thread(self._is_short, root):
            return
        if self._goes_first is not None:
            await asyncio.to_thread(self._goes_first, root, await asyncio.to_thread(self._missing, root))
        if not self._pulled.all() or not await asyncio.to_thread(self._is_short, root):
            return
        async with self._lock:
            try:
                in_use = await self._in_use()
                self._pulled.note_use(*in_use)
                for each in may_go(self._pulled.all(), in_use, self._pulled.now):
                    if not await asyncio.to_thread(self._is_short, root):
                        return
                    fate = await self._cleared(each)
                    if fate.outcome is ClearOutcome.FAILED:
                        log.warning("an image stays", extra={"image": fate.image, "cause": fate.why})
                    elif fate.outcome is not ClearOutcome.IN_USE:
                        log.info("image removed, as the disk is short of space", extra={"image": fate.image})
            except (EngineError, EngineAwayError) as error:
                log.warning("images are not cleared", extra={"cause": str(error)})

    async def clear_now(self, images: Collection[str]) -> Sequence[ImageFate]:
        """Remove images that nobody uses, by names or ids; none: all of them. What has become of each; never raises."""
        clock = asyncio.get_running_loop().time
        async with self._lock:
            due, fates = clock() + CLEARANCE_TIME, []
            unknown = [each for each in images if not any(is_meant(image, each) for image in self._pulled.all())]
            for image in self._pulled.all():
                if images and not any(is_meant(image, each) for each in images):
                    continue
                fate = _fate(image, ClearOutcome.LATER) if clock() > due else await self._cleared(image)
                log.info("image to be cleared", extra={"image": fate.image, "outcome": fate.outcome, "cause": fate.why})
                fates.append(fate)
        return fates + [ImageFate(image=each, outcome=ClearOutcome.UNKNOWN) for each in unknown]

    async def _cleared(self, image: PulledImage) -> ImageFate:
        try:
            async with self._removing:
                if image.id in await self._in_use() or any(without_tag(name) in self._coming for name in image.names):
                    return _fate(image, ClearOutcome.IN_USE)
                return await self._remove(image)
        except (EngineError, EngineAwayError) as error:
            return _fate(image, ClearOutcome.FAILED, str(error))

    async def _in_use(self) -> Collection[str]:
        return {*await self._engine.containers.images(), *self._held()}

    async def _remove(self, image: PulledImage) -> ImageFate:
        """Take an image the names that the agent gave it; under names of others it stays."""
        for name in image.names:
            found = await self._engine.images.find(name)
            if found is not None and found.id == image.id:
                await self._engine.images.remove(name)
        left = await self._engine.images.find(image.id)
        self._pulled.forget(image.id)
        return _fate(image, ClearOutcome.REMOVED if left is None else ClearOutcome.SHARED)

    def _is_short(self, root: Path) -> bool:
        return self._missing(root) > 0

    def _missing(self, root: Path) -> int:
        """Bytes that should be free beyond those that are."""
        try:
            found = self._disk(root)
        except OSError:
            return 0  # the engine's directory is not everybody's to see
        return (found.f_blocks * self._keep_free // 100 - found.f_bavail) * found.f_frsize


def _fate(image: PulledImage, outcome: ClearOutcome, why: str = "") -> ImageFate:
    return ImageFate(image=image.names[0], outcome=outcome, bytes=image.bytes, why=why)
