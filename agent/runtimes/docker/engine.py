"""The Docker engine of this node in our own words; the only module that knows aiodocker and aiohttp.

The engine answers, refuses (EngineError) or is away (EngineAwayError). While it is restarted, calls are repeated for
a while: each of them does no harm when it is done twice.
"""

import asyncio
import base64
import binascii
import contextlib
import json
import stat
import tarfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import aiodocker
import aiohttp
from aiohttp import ClientTimeout

from agent.core.containers.spec import Body, Image
from agent.core.launching.handover import RegistryLogin
from agent.runtimes.docker.answers import About, ContainerProgram, ContainerState
from agent.runtimes.docker.starts import Starts
from muster.domain.errors import MusterError, UnavailableError
from muster.domain.gangs.log import Stream

T = TypeVar("T")

CALL_LIMIT = 120.0
"""Seconds for one call; creating a container on a busy disk may take some."""
ENGINE_PROBE_LIMIT = 1.0
"""Seconds in which an engine that is not being stopped answers the smallest of questions."""
SILENCE_LIMIT = 600.0
"""Seconds without a word while an image is pulled; a large layer is unpacked within less."""
AWAY_LIMIT = 60.0
"""Seconds for which calls wait for an engine that is being restarted."""

EVENT_DELAY = 2.0
"""Seconds within which an engine that has ended a container tells of it; a moment later is usual."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0

_NOT_FOUND, _CONFLICT, _NOT_CONNECTED = 404, 409, 900
_NEVER = "0001-01-01T00:00:00Z"
_GO_DIRECTORY, _GO_SYMLINK = 1 << 31, 1 << 27
"""Bits of Go's file modes."""


class EngineError(MusterError):
    """The engine refused; `status` is that of HTTP, 0 where the refusal came in the middle of an answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status

    @property
    def not_found(self) -> bool:
        """Whether it refused because there is no such thing."""
        return self.status == _NOT_FOUND

    @property
    def conflict(self) -> bool:
        """Whether the name is taken, or the container is in another state."""
        return self.status == _CONFLICT


class EngineAwayError(UnavailableError):
    """The engine does not answer, or broke off."""


class DockerEngine:
    """A connection to one engine."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self.starts = Starts()
        """What is being started; whatever can wait a little waits for it."""
        self.watches = True
        """Whether ends and output are lost while it is away; containers of Podman have watchers of their own."""
        self._opened: tuple[aiodocker.Docker, aiohttp.BaseConnector] | None = None

    @property
    def _docker(self) -> aiodocker.Docker:
        """Made at the first call, which runs in the event loop; aiohttp demands one."""
        if self._opened is None:
            # No limit: every execution keeps three streams open, and at aiohttp's limit all other calls would hang.
            connector = aiohttp.UnixConnector(str(self._socket), limit=0)
            timeout = ClientTimeout(total=CALL_LIMIT)
            self._opened = (aiodocker.Docker("unix://localhost", connector=connector, timeout=timeout), connector)
        return self._opened[0]

    async def close(self) -> None:
        """Let go of all connections."""
        if self._opened is not None:
            docker, connector = self._opened
            self._opened = None
            await docker.close()
            await connector.close()

    async def about(self, patience: float = AWAY_LIMIT) -> About:
        """What the engine says about itself."""
        version = await self._call(self._docker.version, patience)
        info = await self._call(self._docker.system.info, patience)
        podman = "Podman Engine" in {component.get("Name") for component in version.get("Components") or ()}
        self.watches = not podman
        return About(
            version=version["Version"],
            podman=podman,
            architecture=info["Architecture"],
            cpus=info["NCPU"],
            init=bool(info.get("InitBinary")) and (info.get("InitCommit") or {}).get("ID") != "N/A",
            live_restore=bool(info.get("LiveRestoreEnabled")),
            nvidia="nvidia" in (info.get("Runtimes") or {}),
            root=Path(info.get("DockerRootDir") or "/"),
        )

    async def stays(self) -> bool:
        """Whether the engine takes new connections; one that is being stopped has given that up first of all."""
        try:
            async with asyncio.timeout(ENGINE_PROBE_LIMIT):
                reader, writer = await asyncio.open_unix_connection(self._socket)
                try:
                    writer.write(b"GET /_ping HTTP/1.0\r\nHost: localhost\r\n\r\n")
                    return b" 200 " in await reader.readline()
                finally:
                    writer.close()
        except OSError:
            return False

    # images

    async def image(self, reference: str) -> Image | None:
        """What is known of an image on this node; None when it is not here."""
        try:
            found = await self._call(lambda: self._docker.images.inspect(reference))
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
        with _in_our_words():
            async for news in self._docker.images.pull(reference, auth=auth, stream=True, timeout=timeout):
                yield news

    async def load_image(self, archive: bytes) -> None:
        """Take an image from an archive."""
        await self._call(lambda: self._docker.images.import_image(archive))

    # containers

    async def create(self, name: str, body: Body) -> str:
        """The id of a new container. Cancelled, it first waits for the engine's answer: then it can be removed."""
        return (await self._call(lambda: _whole(self._docker.containers.create(body, name=name)))).id

    async def put(self, container: str, archive: bytes) -> None:
        """Unpack an archive at the root of a container that may not have been started yet."""
        handle: Any = self._docker.containers.container(container)  # this call has no types
        await self._call(lambda: handle.put_archive("/", archive))

    async def start(self, container: str) -> None:
        """Start a container that never was. When the engine goes in the middle, it is asked before trying again."""
        while True:
            try:
                with _in_our_words(), self.starts.one():
                    return await _whole(self._docker.containers.container(container).start())
            except EngineAwayError:
                if (await self.state(container)).started:
                    return None

    async def state(self, container: str, patience: float = AWAY_LIMIT) -> ContainerState:
        """How a container is, by id or name."""
        found = await self._call(lambda: self._docker.containers.container(container).show(), patience)
        state = found["State"]
        networks = (found["NetworkSettings"].get("Networks") or {}).values()
        return ContainerState(
            id=found["Id"],
            started=state["StartedAt"] != _NEVER,
            running=state["Running"],
            exit_code=state["ExitCode"],
            out_of_memory=state["OOMKilled"],
            memory_limited=found["HostConfig"]["Memory"] > 0,
            address=next((network["IPAddress"] for network in networks if network["IPAddress"]), ""),
            user=found["Config"]["User"],
            pid=state["Pid"],
            dated=state["FinishedAt"] != _NEVER,
        )

    async def wait(self, container: str) -> None:
        """Wait until a started container has ended, without limit in time; EngineAwayError when the engine goes."""
        with _in_our_words():
            await self._docker.containers.container(container).wait()

    async def seen_end(self, container: str) -> int | None:
        """The exit code of the first end that this engine saw; None: it was away then, or has forgotten it.

        An engine that is told to stop what had ended unseen tells of two ends; the exit code of the second is made up.
        """
        filters = json.dumps({"container": [container], "event": ["die"]})
        params = {"since": "0", "until": f"{time.time() + EVENT_DELAY:.3f}", "filters": filters}
        return await self._call(lambda: self._first_end(params))

    async def _first_end(self, params: Mapping[str, str]) -> int | None:
        query = self._docker._query("events", params=params)  # noqa: SLF001 - the public way never ends
        told = b""
        async with query as answer, contextlib.aclosing(_body(answer)) as chunks:
            async for chunk in chunks:
                told += chunk
                if b"\n" in told:
                    break
        return int(json.loads(told.splitlines()[0])["Actor"]["Attributes"]["exitCode"]) if told else None

    async def deserted(self, container: str) -> bool:
        """Whether no process is left in a container that counts as running."""
        found = await self._call(lambda: self._docker._query_json(f"containers/{container}/top"))  # noqa: SLF001 - there is no public call for it
        return not found["Processes"]

    async def rouse(self, container: str) -> None:
        """Make an engine see that a container has ended; it does when it is told to kill what is not there."""
        await self._call(self._docker.containers.container(container).kill)

    async def stop(self, container: str, grace: int) -> None:
        """Ask its first process to end, and kill all of it after `grace` seconds; harmless when nothing runs."""
        limit = ClientTimeout(total=grace + CALL_LIMIT)
        await self._call(lambda: self._docker.containers.container(container).stop(t=grace, timeout=limit))

    async def remove(self, container: str) -> None:
        """Kill and remove a container with its anonymous volumes; harmless when it is not there."""
        limit = ClientTimeout(total=CALL_LIMIT)
        handle = self._docker.containers.container(container)
        try:
            await self._call(lambda: handle.delete(force=True, v=True, timeout=limit))
        except EngineError as error:
            if error.not_found:
                return
            if not error.conflict:
                raise
            await self._removed_elsewhere(container)

    async def _removed_elsewhere(self, container: str) -> None:
        """Wait for the end of a removal that another client began."""
        limit = ClientTimeout(total=CALL_LIMIT)
        handle = self._docker.containers.container(container)
        try:
            await self._call(lambda: handle.wait(condition="removed", timeout=limit))
        except EngineError as error:
            if not error.not_found:
                raise

    async def beginning(self, container: str, path: str, length: int) -> bytes:
        """The first bytes of a file in a container."""
        return await self._call(lambda: self._beginning(container, path, length))

    async def _beginning(self, container: str, path: str, length: int) -> bytes:
        # The file comes in an archive, behind a header of one block; the rest of it is not read.
        query = self._docker._query(f"containers/{container}/archive", params={"path": path})  # noqa: SLF001 - its public call reads all of it into memory
        archive = b""
        async with query as answer, contextlib.aclosing(_body(answer)) as chunks:
            async for chunk in chunks:
                archive += chunk
                if len(archive) >= tarfile.BLOCKSIZE + length:
                    break
        header = tarfile.TarInfo.frombuf(archive[: tarfile.BLOCKSIZE], "utf-8", "replace")
        return archive[tarfile.BLOCKSIZE :][: min(header.size, length)]

    async def find(self, labels: Mapping[str, str]) -> Sequence[tuple[str, Mapping[str, str]]]:
        """Id and labels of every container, running or not, that carries all these labels."""
        filters = json.dumps({"label": [f"{name}={value}" for name, value in labels.items()]})
        found = await self._call(lambda: self._docker.containers.list(all="true", filters=filters))
        return [(container.id, container["Labels"]) for container in found]

    async def program(self, container: str, path: str) -> ContainerProgram | None:
        """What is at a path in a container; None: nothing."""
        return await self._call(lambda: self._program(container, path))

    async def _program(self, container: str, path: str) -> ContainerProgram | None:
        # Not by aiodocker: it reads the body of a refusal, and an answer to HEAD has none.
        url = f"unix://localhost/{self._docker.api_version}/containers/{container}/archive"
        async with self._docker.session.head(url, params={"path": path}) as answer:
            if answer.status == _NOT_FOUND:
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

    async def output(self, container: str, stream: Stream, since: str | None) -> AsyncGenerator[bytes, None]:
        """What a container printed to one stream from `since` on, and prints, until it ends or the engine goes."""
        wanted = {each: "1" if each is stream else "0" for each in Stream}
        params = {"stdout": wanted[Stream.STDOUT], "stderr": wanted[Stream.STDERR], "follow": "1", "timestamps": "1"}
        if since is not None:
            params["since"] = since
        with _in_our_words():
            query = self._docker._query(  # noqa: SLF001 - the public way merges both streams and decodes them
                f"containers/{container}/logs", params=params, timeout=ClientTimeout(total=None)
            )
            async with query as answer, contextlib.aclosing(_body(answer)) as chunks:
                async for chunk in chunks:
                    yield chunk

    async def _call(self, call: Callable[[], Awaitable[T]], patience: float = AWAY_LIMIT) -> T:
        """The result of a call, repeated while the engine is away."""
        loop = asyncio.get_running_loop()
        deadline, pause = loop.time() + patience, _FIRST_PAUSE
        while True:
            try:
                with _in_our_words():
                    return await call()
            except _DisconnectedError:
                if loop.time() + pause > deadline:
                    raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


class _DisconnectedError(EngineAwayError):
    """Nobody listens, or the connection broke: worth another try. An engine that is silent is not."""


async def _whole(call: Coroutine[Any, Any, T]) -> T:
    """The result of a call that goes on to its end when the caller is cancelled, so that nothing is half done."""
    calling = asyncio.get_running_loop().create_task(call, name="Docker call that must end")
    try:
        return await asyncio.shield(calling)
    except asyncio.CancelledError:
        await asyncio.wait([calling])
        calling.cancelled() or calling.exception()  # nobody is there any more to be told
        raise


async def _body(answer: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
    try:
        async for chunk in answer.content.iter_any():
            yield chunk
    finally:
        answer.close()  # the rest of an endless body cannot be awaited


@contextlib.contextmanager
def _in_our_words() -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        raise EngineAwayError("the Docker engine does not answer") from error
    except aiodocker.DockerError as error:
        if error.status == _NOT_CONNECTED:
            raise _DisconnectedError(str(error.message)) from error
        raise EngineError(error.status, str(error.message)) from error
    except (aiohttp.ClientError, ConnectionError) as error:
        raise _DisconnectedError(f"the Docker engine broke off: {error}") from error
