"""The images of one engine."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from typing import Any

from aiodocker.utils import compose_auth_header
from aiohttp import ClientTimeout

from agent.core.containers.spec import Image
from agent.core.launching.handover import RegistryLogin
from agent.runtimes.docker.engine.connection import (
    EngineAwayError,
    EngineConnection,
    EngineError,
    in_our_words,
)
from muster.domain.jobs.image import is_image_digest, tag_of, without_tag

SILENCE_LIMIT = 600.0
"""Seconds without a word while an image is pulled; a large layer is unpacked within less."""

REGISTRY_LIMIT = 30.0
"""Seconds in which a registry tells a digest; one that needs longer is told of when the image is pulled."""


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
            bytes=int(found.get("Size") or 0),
            known_as=tuple(found.get("RepoDigests") or ()),
            architecture=found.get("Architecture") or "",
            entrypoint=tuple(config.get("Entrypoint") or ()),
            command=tuple(config.get("Cmd") or ()),
            env=dict(variable.partition("=")[::2] for variable in config.get("Env") or ()),
            workdir=config.get("WorkingDir") or "/",
        )

    async def pull(self, reference: str, login: RegistryLogin | None = None) -> AsyncGenerator[Mapping[str, Any], None]:
        """Fetch an image, perhaps as somebody whom its registry knows; the engine's news about it."""
        timeout: Any = ClientTimeout(total=None, sock_read=SILENCE_LIMIT)
        auth = None if login is None else _auth(login)
        with in_our_words():
            async for news in self._connection.docker.images.pull(reference, auth=auth, stream=True, timeout=timeout):
                yield news

    async def digest(self, reference: str, login: RegistryLogin | None = None) -> str:
        """The digest that the registry of an image has under its name now; empty: the engine cannot tell."""
        registry = reference.partition("/")[0]
        headers = {} if login is None else {"X-Registry-Auth": compose_auth_header(_auth(login), registry)}
        path, limit = f"distribution/{reference}/json", ClientTimeout(total=REGISTRY_LIMIT)
        with suppress(EngineError, EngineAwayError), in_our_words():  # whoever pulls it by name is told why
            found = await self._connection.docker._query_json(path, headers=headers, timeout=limit)  # noqa: SLF001 - there is no public call for it
            digest = found["Descriptor"]["digest"] if isinstance(found, Mapping) and "Descriptor" in found else ""
            return digest if is_image_digest(digest) else ""
        return ""

    async def name(self, image: str, reference: str) -> None:
        """Have an image found under another name, too."""
        repository, tag = without_tag(reference), tag_of(reference)
        await self._connection.call(lambda: self._connection.docker.images.tag(image, repository, tag=tag))

    async def remove(self, name: str) -> None:
        """Take an image a name, and have the image gone with its last one, unless a container uses it."""
        await self._connection.call(lambda: self._connection.docker.images.delete(name))

    async def load(self, archive: bytes) -> None:
        """Take an image from an archive."""
        await self._connection.call(lambda: self._connection.docker.images.import_image(archive))


def _auth(login: RegistryLogin) -> dict[str, str]:
    return {"username": login.username, "password": login.password}
