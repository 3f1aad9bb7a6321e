"""The images of one engine."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any

from aiohttp import ClientTimeout

from agent.core.containers.spec import Image
from agent.core.launching.handover import RegistryLogin
from agent.runtimes.docker.engine.connection import EngineConnection, EngineError, in_our_words

SILENCE_LIMIT = 600.0
"""Seconds without a word while an image is pulled; a large layer is unpacked within less."""


class EngineImages:
    """What one engine has of images: looked for, pulled and loaded."""

    def __init__(self, connection: EngineConnection) -> None:
        self._connection = connection

    async def find(self, reference: str) -> Image | None:
        """What is known of an image on this node; None when it is not here."""
        try:
            found = await self._connection.call(lambda: self._connection.docker.images.inspect(reference))
        except EngineError as error:
            if error.not_found:
                return None
            raise
        config = found.get("Config") or {}
        return Image(
            id=found["Id"],
            architecture=found.get("Architecture") or "",
            entrypoint=tuple(config.get("Entrypoint") or ()),
            command=tuple(config.get("Cmd") or ()),
            env=dict(variable.partition("=")[::2] for variable in config.get("Env") or ()),
            workdir=config.get("WorkingDir") or "/",
        )

    async def pull(self, reference: str, login: RegistryLogin | None = None) -> AsyncGenerator[Mapping[str, Any], None]:
        """Fetch an image, perhaps as somebody whom its registry knows; the engine's news about it."""
        timeout: Any = ClientTimeout(total=None, sock_read=SILENCE_LIMIT)
        auth = None if login is None else {"username": login.username, "password": login.password}
        with in_our_words():
            async for news in self._connection.docker.images.pull(reference, auth=auth, stream=True, timeout=timeout):
                yield news

    async def load(self, archive: bytes) -> None:
        """Take an image from an archive."""
        await self._connection.call(lambda: self._connection.docker.images.import_image(archive))
