"""The way to the Docker engine: calls, and what becomes of them.

The engine answers, refuses (EngineError) or is away (EngineAwayError). While it is restarted, calls are repeated for
a while: each of them does no harm when it is done twice.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

import aiodocker
import aiohttp
from aiohttp import ClientTimeout

from muster.domain.errors import MusterError, UnavailableError

T = TypeVar("T")

CALL_LIMIT = 120.0
"""Seconds for one call; creating a container on a busy disk may take some."""
PROMPT_PING = 1.0
"""Seconds in which an engine answers a ping that is neither very busy nor being stopped."""
AWAY_LIMIT = 60.0
"""Seconds for which calls wait for an engine that is being restarted."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0

NOT_FOUND, _CONFLICT, _NOT_CONNECTED = 404, 409, 900
"""What engines say in numbers: those of HTTP, and that of the client where nobody listens."""


class EngineError(MusterError):
    """The engine refused; `status` is that of HTTP, 0 where the refusal came in the middle of an answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status

    @property
    def not_found(self) -> bool:
        """Whether it refused because there is no such thing."""
        return self.status == NOT_FOUND

    @property
    def conflict(self) -> bool:
        """Whether the name is taken, or the container is in another state."""
        return self.status == _CONFLICT


class EngineAwayError(UnavailableError):
    """The engine does not answer, or broke off."""


class PingAnswer(Enum):
    """How an engine answers a ping over a new connection."""

    PROMPT = "prompt"
    LATE = "late"
    """After a second: by an engine that is very busy, or by the next one where systemd holds the socket meanwhile."""
    NONE = "none"
    """The engine takes no new connections, which is the first thing that one does that is being stopped."""


class EngineConnection:
    """A connection to one engine."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._opened: tuple[aiodocker.Docker, aiohttp.BaseConnector] | None = None

    @property
    def docker(self) -> aiodocker.Docker:
        """The client, made at the first call, which runs in the event loop; aiohttp demands one."""
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

    async def ping(self) -> PingAnswer:
        """How the engine answers a new connection; EngineAwayError where it takes one and is silent."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            async with asyncio.timeout(CALL_LIMIT):
                answered = await self._pinged()
        except TimeoutError as error:
            raise EngineAwayError("the Docker engine does not answer") from error
        except OSError:
            return PingAnswer.NONE
        if not answered:
            return PingAnswer.NONE
        return PingAnswer.PROMPT if loop.time() - begun <= PROMPT_PING else PingAnswer.LATE

    async def _pinged(self) -> bool:
        reader, writer = await asyncio.open_unix_connection(self._socket)
        try:
            writer.write(b"GET /_ping HTTP/1.0\r\nHost: localhost\r\n\r\n")
            return b" 200 " in await reader.readline()
        finally:
            writer.close()

    async def call(self, call: Callable[[], Awaitable[T]], patience: float = AWAY_LIMIT) -> T:
        """The result of a call, repeated while the engine is away."""
        loop = asyncio.get_running_loop()
        deadline, pause = loop.time() + patience, _FIRST_PAUSE
        while True:
            try:
                with in_our_words():
                    return await call()
            except _DisconnectedError:
                if loop.time() + pause > deadline:
                    raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


class _DisconnectedError(EngineAwayError):
    """Nobody listens, or the connection broke: worth another try. An engine that is silent is not."""


async def whole(call: Coroutine[Any, Any, T]) -> T:
    """The result of a call that goes on to its end when the caller is cancelled, so that nothing is half done."""
    calling = asyncio.get_running_loop().create_task(call, name="Docker call that must end")
    try:
        return await asyncio.shield(calling)
    except asyncio.CancelledError:
        await asyncio.wait([calling])
        calling.cancelled() or calling.exception()  # nobody is there any more to be told
        raise


async def body_of(answer: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
    """The body of an answer in pieces, as they come; who reads no more of it closes this."""
    try:
        async for chunk in answer.content.iter_any():
            yield chunk
    finally:
        answer.close()  # the rest of an endless body cannot be awaited


@contextlib.contextmanager
def in_our_words() -> Iterator[None]:
    """Raise EngineError or EngineAwayError for what the client raises inside."""
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
