"""How questions of a client reach the coordinator: what is asked again, and how long a broken stream is taken up."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, TypeVar

import grpc
import grpc.aio

from muster.client.connection import Connection
from muster.domain.errors import ClientNotOpenError, ExhaustedError, UnavailableError
from muster.rpc.status import error_from

RETRY_PAUSES = (0.1, 0.4, 0.7)
"""Seconds between the tries of one question while nobody answers; short, because a person waits.

Together they are twice as long as a channel pauses between its own attempts (`CHANNEL_OPTIONS`): a coordinator that is
back is found.
"""

RESUBSCRIBE_PAUSES = (0.2, 0.5, 1.0, 2.0, *(3.0,) * 40)
"""Seconds between the tries to take up a broken stream again: two minutes, enough to restart a coordinator."""

PAGE = 500
"""Jobs or nodes that come with one answer."""

_MOST_AT_ONCE = 100
"""Questions of one client that are under way; more wait here, as a coordinator takes only so many of one connection."""

_Request = TypeVar("_Request")
_Answer = TypeVar("_Answer")
_Stub = TypeVar("_Stub")


class Calls:
    """The calls of one client, over one channel that is open between `open` and `close`."""

    def __init__(self, connection: Connection, timeout: float) -> None:
        self.connection = connection
        self.timeout = timeout
        self._opened: grpc.aio.Channel | None = None
        self._stubs: dict[Any, Any] = {}
        self._turn = asyncio.Semaphore(_MOST_AT_ONCE)
        self.closing: list[Callable[[], Awaitable[None]]] = []
        """Closes what services have opened beside the channel."""

    @property
    def channel(self) -> grpc.aio.Channel:
        """The open channel; raises ClientNotOpenError where there is none."""
        if self._opened is None:
            raise ClientNotOpenError
        return self._opened

    def stub(self, kind: Callable[[grpc.aio.Channel], _Stub]) -> _Stub:
        """The stub of a service on the open channel; made once. Raises ClientNotOpenError."""
        channel = self.channel
        if kind not in self._stubs:
            self._stubs[kind] = kind(channel)
        stub: _Stub = self._stubs[kind]
        return stub

    def open(self) -> None:
        """Open the channel; an open one stays as it is."""
        if self._opened is None:
            self._opened = self.connection.open()

    async def close(self) -> None:
        """Close the channel, if it is open."""
        channel, self._opened = self._opened, None
        self._stubs.clear()
        closing, self.closing = self.closing, []
        for close in closing:
            await close()
        if channel is not None:
            await self.connection.close(channel)

    async def ask(
        self,
        call: "grpc.aio.UnaryUnaryMultiCallable[_Request, _Answer]",
        request: _Request,
        *,
        pauses: tuple[float, ...] = RETRY_PAUSES,
        patience: float = 0.0,
    ) -> _Answer:
        """The answer to one question, which is asked again after each pause while nobody answers.

        `patience`: seconds in which it must be there, where it takes longer than others.
        """
        for pause in (*pauses, None):
            try:
                async with self._turn:
                    asked = call(
                        request, timeout=max(self.timeout, patience), metadata=self.connection.credentials.metadata
                    )
                    answer = await asked
                    self.connection.hear(await asked.trailing_metadata())
                    return answer
            except grpc.aio.AioRpcError as error:
                if pause is None or error.code() is not grpc.StatusCode.UNAVAILABLE:
                    raise self._error(error) from error
                await asyncio.sleep(pause)
        raise AssertionError("the last try answers or raises")

    async def stream(
        self,
        call: "grpc.aio.UnaryStreamMultiCallable[_Request, _Answer]",
        request: _Request,
    ) -> AsyncGenerator[_Answer, None]:
        """What the coordinator sends in answer to one request, until it ends or breaks."""
        stream = call(request, metadata=self.connection.credentials.metadata)
        try:
            async for message in stream:
                yield message
        except grpc.aio.AioRpcError as error:
            raise self._error(error) from error
        finally:
            stream.cancel()

    def _error(self, error: grpc.aio.AioRpcError) -> Exception:
        known = error_from(error.code(), error.details() or "", address=self.connection.address)
        if isinstance(known, ExhaustedError):
            said = dict(error.trailing_metadata() or ()).get("retry-after")
            known.retry_after = float(said) if isinstance(said, str) and said.isdecimal() else None
        return known


class Patience:
    """How long a broken stream is taken up again; every message renews it."""

    def __init__(self, pauses: tuple[float, ...] = RESUBSCRIBE_PAUSES) -> None:
        self._pauses = iter(pauses)

    def renew(self) -> None:
        """Have all pauses again, as somebody answers."""
        self._pauses = iter(RESUBSCRIBE_PAUSES)

    async def pause_or_raise(self, error: UnavailableError) -> None:
        """Wait before the next try; raise `error` when there were enough."""
        pause = next(self._pauses, None)
        if pause is None:
            raise error
        await asyncio.sleep(pause)
