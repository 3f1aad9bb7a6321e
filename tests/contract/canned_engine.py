"""A Docker engine that answers as a test says: late, with refusals, or as one that is being stopped."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

CONTAINER = "c0ffee"

RUNS, DESERTED, NOT_FOUND, UNAVAILABLE = 200, 204, 404, 503
"""What runs in a container, told as a status: something, nothing, nothing that containerd knows, or no answer."""

_NEVER = "0001-01-01T00:00:00Z"
_ONCE = "2026-01-01T00:00:00Z"
_VERSIONED = "/{version:v[0-9.]+}"


@dataclass
class CannedEngine:
    """An engine with one container that was started."""

    pid: int = 0
    """The first process in the container."""
    exit_code: int = 0
    """How the container ends."""
    running: bool = True
    ping_after: float = 0.0
    """Seconds after which it answers a ping."""
    wait_refusal: int = 0
    """The status with which it refuses to wait for an end; 0: it waits."""
    looks: list[int] = field(default_factory=lambda: [DESERTED])
    """What it answers to those who ask what runs in the container: statuses in turn, the last one again and again."""
    ends_after_looks: bool = False
    """Whether the container ends by itself after the last of these."""
    saw_end: bool = False
    """Whether it tells of the end when it is asked what happened."""
    kills: int = 0
    """How often it was told to kill the container."""
    waited: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when somebody waits for the end."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    """When set, it answers those who wait for the end."""

    def end(self) -> None:
        """See the end of the container, and tell of it."""
        self.running, self.saw_end = False, True
        self.ended.set()

    @asynccontextmanager
    async def listening(self, listener: socket.socket) -> AsyncIterator[None]:
        """Take connections, also those that came before. At the end take none, then end the container, then go."""
        runner = web.AppRunner(self._application(), shutdown_timeout=5)
        await runner.setup()
        try:
            await web.SockSite(runner, listener.dup()).start()  # the caller's goes on as systemd's does
            yield
        finally:
            await runner.cleanup()

    def _application(self) -> web.Application:
        application = web.Application()
        application.on_shutdown.append(self._stopped)
        container = f"{_VERSIONED}/containers/{CONTAINER}"
        application.add_routes(
            [
                web.get("/_ping", self._ping),
                web.get("/version", self._version),
                web.get(f"{_VERSIONED}/version", self._version),
                web.get(f"{_VERSIONED}/info", self._info),
                web.get(f"{_VERSIONED}/events", self._events),
                web.get(f"{container}/json", self._inspect),
                web.get(f"{container}/top", self._top),
                web.post(f"{container}/wait", self._wait),
                web.post(f"{container}/kill", self._kill),
            ]
        )
        return application

    async def _stopped(self, _: web.Application) -> None:
        self.end()

    async def _ping(self, _: web.Request) -> web.Response:
        await asyncio.sleep(self.ping_after)
        return web.Response(text="OK")

    async def _version(self, _: web.Request) -> web.Response:
        return web.json_response({"Version": "20.10.24", "ApiVersion": "1.41", "Components": []})

    async def _info(self, _: web.Request) -> web.Response:
        return web.json_response({"Architecture": "x86_64", "NCPU": 1, "LiveRestoreEnabled": False})

    async def _events(self, _: web.Request) -> web.Response:
        event = {"Actor": {"Attributes": {"exitCode": str(self.exit_code)}}}
        return web.Response(text=json.dumps(event) + "\n" if self.saw_end else "")

    async def _inspect(self, _: web.Request) -> web.Response:
        state = {
            "StartedAt": _ONCE,
            "FinishedAt": _NEVER if self.running else _ONCE,
            "Running": self.running,
            "ExitCode": 0 if self.running else self.exit_code,
            "OOMKilled": False,
            "Pid": self.pid if self.running else 0,
        }
        body = {"State": state, "NetworkSettings": {}, "HostConfig": {"Memory": 0}, "Config": {"User": ""}}
        return web.json_response({"Id": CONTAINER, **body})

    async def _top(self, _: web.Request) -> web.Response:
        status = self.looks[0]
        if len(self.looks) > 1:
            del self.looks[0]
        elif self.ends_after_looks:
            self.end()
        if status >= web.HTTPBadRequest.status_code:
            return _refusal(status)
        return web.json_response({"Processes": None if status == DESERTED else [["root", "1", "train"]]})

    async def _wait(self, _: web.Request) -> web.Response:
        if self.wait_refusal:
            return _refusal(self.wait_refusal)
        self.waited.set()
        await self.ended.wait()
        return web.json_response({"StatusCode": self.exit_code})

    async def _kill(self, _: web.Request) -> web.Response:
        self.kills += 1
        self.end()
        return web.Response(status=204)


@asynccontextmanager
async def socket_of(path: Path) -> AsyncIterator[socket.socket]:
    """A socket on which one engine after the other can listen."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        yield listener


def _refusal(status: int) -> web.Response:
    return web.json_response({"message": "refused"}, status=status)
