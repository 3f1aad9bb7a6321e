"""Removes images that the agent has pulled and nobody uses, where too little of the disk is free."""

import asyncio
import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from agent.runtimes.docker.engine.connection import EngineAwayError, EngineError
from agent.runtimes.docker.engine.engine import DockerEngine
from agent.runtimes.docker.images.pulled import PulledImage, PulledImages, may_go

log = logging.getLogger(__name__)

DEFAULT_IMAGES_KEEP_FREE = 10
"""Percent of the file system with the images below which images go."""


class ImageClearing:
    """Keeps a part of the disk free of images."""

    def __init__(
        self,
        engine: DockerEngine,
        pulled: PulledImages,
        keep_free: int = DEFAULT_IMAGES_KEEP_FREE,
        disk: Callable[[Path], os.statvfs_result] = os.statvfs,
    ) -> None:
        self._engine = engine
        self._pulled = pulled
        self._keep_free = keep_free
        self._disk = disk
        self._lock = asyncio.Lock()

    async def clear(self, root: Path, held: Callable[[], Iterable[str]]) -> None:
        """Remove what may go until enough is free at `root`, or nothing more can go.

        `held`: the images with which something is being prepared. What the engine refuses stays.
        """
        if not self._pulled.all() or not await asyncio.to_thread(self._is_short, root):
            return
        async with self._lock:
            try:
                in_use = {*await self._engine.containers.images(), *held()}
                self._pulled.note_use(*in_use)
                for each in may_go(self._pulled.all(), in_use, self._pulled.now):
                    if not await asyncio.to_thread(self._is_short, root):
                        return
                    await self._remove(each)
            except (EngineError, EngineAwayError) as error:
                log.warning("images are not cleared", extra={"cause": str(error)})

    async def _remove(self, image: PulledImage) -> None:
        """Take an image the names that the agent gave it; under names of others it stays."""
        try:
            for name in image.names:
                found = await self._engine.images.find(name)
                if found is not None and found.id == image.id:
                    await self._engine.images.remove(name)
        except EngineError as error:
            log.warning("an image stays", extra={"image": image.names[0], "cause": str(error)})
            return
        log.info("image removed, as the disk is short of space", extra={"image": image.names[0]})
        self._pulled.forget(image.id)

    def _is_short(self, root: Path) -> bool:
        try:
            found = self._disk(root)
        except OSError:
            return False  # the engine's directory is not everybody's to see
        return found.f_bavail * 100 < found.f_blocks * self._keep_free
