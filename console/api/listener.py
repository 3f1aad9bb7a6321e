"""The HTTP server: its sockets, its certificate, and how long it waits for whom. It is uvicorn's."""

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from muster.domain.errors import MusterError

MAX_HEAD = 16 * 1024
"""Bytes of the head of a request."""
HEAD_PATIENCE = 30.0
"""Seconds in which the head of a request has to arrive."""
IDLE_PATIENCE = 60
"""Seconds for which a connection without a request stays open."""
CONNECTIONS = 2_000
"""Connections at once."""
_STOP_GRACE = 1
"""Seconds that streams have to end in when it is stopped."""
_WAITING = 128
"""Connections that the kernel keeps until they are looked at."""


class ConsoleListener(uvicorn.Server):
    """Serves an application at one address until it is told to stop. Signals are left to the program."""

    def __init__(self, app: Any, listen: str, cert: Path | None, key: Path | None) -> None:  # noqa: ANN401 - an ASGI application
        """Bind; raises MusterError where the address is taken, or the certificate cannot be used."""
        _refuse_bad_certificate(cert, key)
        self._socket = _bound(listen)
        host, port = self._socket.getsockname()[:2]
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        """Where it is served."""
        super().__init__(
            uvicorn.Config(
                app,
                http=PatientHttp,
                ws="none",
                lifespan="off",
                ssl_certfile=cert,
                ssl_keyfile=key,
                limit_concurrency=CONNECTIONS,
                timeout_keep_alive=IDLE_PATIENCE,
                timeout_graceful_shutdown=_STOP_GRACE,
                h11_max_incomplete_event_size=MAX_HEAD,
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
            )
        )
        logging.getLogger("uvicorn").setLevel(logging.WARNING)

    async def run_until(self, stopped: asyncio.Event) -> None:
        """Serve until this is set; returns once all connections have ended."""
        async with asyncio.TaskGroup() as tasks:
            serving = tasks.create_task(self.serve(sockets=[self._socket]), name="HTTP")
            await stopped.wait()
            self.should_exit = True
            await serving

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield


class PatientHttp(H11Protocol):
    """HTTP/1.1 as uvicorn speaks it, that closes a connection whose next request does not come whole in time."""

    _limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Wait for the first request."""
        super().connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        """Take what has come."""
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._wait_for_head()
        else:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        """Wait for the next request as long as uvicorn does, until some of it comes."""
        self._stop_waiting()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        if self._limit is None:
            self._limit = self.loop.call_later(HEAD_PATIENCE, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None


def _bound(listen: str) -> socket.socket:
    host, _, port = listen.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        bound = socket.create_server((host, int(port)), family=family, backlog=_WAITING)
    except OSError as error:
        raise MusterError(f"cannot listen at {listen}: {error.strerror}; --listen names another address") from error
    # Connections have it from here. Head and body of an answer are written apart, and else the body waits for 40 ms,
    # until the head is acknowledged; asyncio sets it only for sockets that were made with the protocol's number.
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return bound


def _refuse_bad_certificate(cert: Path | None, key: Path | None) -> None:
    if cert is None:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key)
    except OSError as error:  # also what ssl raises
        reason = error.strerror or error
        raise MusterError(f"cannot use the certificate {cert} with the key {key}: {reason}") from error
