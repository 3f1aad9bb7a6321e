"""The files in the containers of one engine."""

import base64
import binascii
import contextlib
import json
import stat
import tarfile
from typing import Any

from agent.runtimes.docker.answers import ContainerProgram
from agent.runtimes.docker.engine.connection import NOT_FOUND, EngineConnection, EngineError, body_of

_GO_DIRECTORY, _GO_SYMLINK = 1 << 31, 1 << 27
"""Bits of Go's file modes."""


class EngineFiles:
    """Files in containers, running or not: put there and looked at."""

    def __init__(self, connection: EngineConnection) -> None:
        self._connection = connection

    async def put(self, container: str, archive: bytes) -> None:
        """Unpack an archive at the root of a container that may not have been started yet."""
        handle: Any = self._connection.docker.containers.container(container)  # this call has no types
        await self._connection.call(lambda: handle.put_archive("/", archive))

    async def beginning(self, container: str, path: str, length: int) -> bytes:
        """The first bytes of a file in a container."""
        return await self._connection.call(lambda: self._beginning(container, path, length))

    async def _beginning(self, container: str, path: str, length: int) -> bytes:
        # The file comes in an archive, behind a header of one block; the rest of it is not read.
        query = self._connection.docker._query(f"containers/{container}/archive", params={"path": path})  # noqa: SLF001 - its public call reads all of it into memory
        archive = b""
        async with query as answer, contextlib.aclosing(body_of(answer)) as chunks:
            async for chunk in chunks:
                archive += chunk
                if len(archive) >= tarfile.BLOCKSIZE + length:
                    break
        header = tarfile.TarInfo.frombuf(archive[: tarfile.BLOCKSIZE], "utf-8", "replace")
        return archive[tarfile.BLOCKSIZE :][: min(header.size, length)]

    async def program(self, container: str, path: str) -> ContainerProgram | None:
        """What is at a path in a container; None: nothing."""
        return await self._connection.call(lambda: self._program(container, path))

    async def _program(self, container: str, path: str) -> ContainerProgram | None:
        # Not by aiodocker: it reads the body of a refusal, and an answer to HEAD has none.
        url = f"unix://localhost/{self._connection.docker.api_version}/containers/{container}/archive"
        async with self._connection.docker.session.head(url, params={"path": path}) as answer:
            if answer.status == NOT_FOUND:
                return None
            header = answer.headers.get("X-Docker-Container-Path-Stat", "")
        try:
            found = json.loads(base64.b64decode(header))
        except (binascii.Error, ValueError):
            raise EngineError(answer.status, f"no answer about {path} in the container") from None
        mode = found["mode"]
        return ContainerProgram(
            directory=bool(mode & _GO_DIRECTORY),
            executable=bool(mode & (stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)),
            link=found["linkTarget"] if mode & _GO_SYMLINK else None,
        )
