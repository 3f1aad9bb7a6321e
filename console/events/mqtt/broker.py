"""The broker: one connection to a broker of MQTT, which is made again whenever it breaks."""

import asyncio
import json
import logging
import math
import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiomqtt import Client, MqttError, ProtocolVersion, Will

from console.events.answer import TargetAnswer
from console.events.believed import believing
from console.events.mqtt.topics import topic_path
from muster import __version__

log = logging.getLogger(__name__)

CONNECT_AGAIN_AFTER = (1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds between tries to connect; the last holds for all that follow."""
PUBLISHED_WITHIN = 10.0
"""Seconds in which the broker takes a message."""
GOODBYE_WITHIN = 2.0
"""Seconds in which the broker takes the last message of a console that ends."""
MQTT_KEEPALIVE = 20
"""Seconds of silence after which the broker takes the console for gone, and a half as much again."""
_AT_MOST_ONCE = 0
_AT_LEAST_ONCE = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerPlace:
    """Where a broker is, and who the console is to it."""

    host: str
    port: int
    tls: bool = True
    user: str = ""
    password: str = field(default="", repr=False)
    prefix: str = "muster/v1"
    """What all topics begin with."""
    authority: Path | None = None
    """A file of certificates that are believed beside those of the system."""
    cert: Path | None = None
    """A certificate that it shows, with `key`."""
    key: Path | None = None
    telemetry: bool = False
    """Whether it is sent what nodes use."""


class Broker:
    """Publishes while there is a connection."""

    def __init__(
        self,
        place: BrokerPlace,
        *,
        pauses: tuple[float, ...] = CONNECT_AGAIN_AFTER,
        patience: float = PUBLISHED_WITHIN,
    ) -> None:
        self._place = place
        self._pauses = pauses
        self._patience = patience
        self._client: Client | None = None
        self.connected = asyncio.Event()
        """Set while there is a connection."""
        self.connections = 0
        """How many there have been; who publishes states does so anew on each."""

    async def run(self) -> None:
        """Connect, and again when that breaks, until cancelled; says goodbye at its end."""
        tries, client = 0, self._new_client()  # one for all tries: each closes the socket of the one before
        while True:
            try:
                async with client:
                    _heed_cancellation()
                    tries = 0
                    await self._serve(client)
            except (MqttError, OSError) as error:
                log.warning("no connection to the broker", extra={"broker": self._place.host, "cause": str(error)})
            await asyncio.sleep(self._pauses[min(tries, len(self._pauses) - 1)])
            tries += 1

    async def publish(self, path: str, payload: bytes, *, retained: bool = False) -> TargetAnswer:
        """What the broker says to a message for a topic below the prefix; waits a little for a connection."""
        try:
            async with asyncio.timeout(self._patience):
                await self.connected.wait()
            client = self._client
            if client is None:
                return TargetAnswer(taken=False, told="the broker is away")
            await self._send(client, path, payload, _AT_LEAST_ONCE, retained=retained)
        except (TimeoutError, MqttError) as error:
            return TargetAnswer(taken=False, told=str(error) or f"the broker took nothing within {self._patience:g} s")
        return TargetAnswer(taken=True, told="taken")

    async def offer(self, path: str, payload: bytes) -> None:
        """Send a message at most once: where there is no connection it is gone."""
        client = self._client
        if client is not None:
            with suppress(TimeoutError, MqttError):
                await self._send(client, path, payload, _AT_MOST_ONCE)

    async def _serve(self, client: Client) -> None:
        """Be connected until that breaks, or until cancelled."""
        status = topic_path("status")
        here = {"state": "here", "version": __version__, "since": datetime.now(UTC).isoformat()}
        await self._send(client, status, _encoded(here), _AT_LEAST_ONCE, retained=True)
        self._client, self.connections = client, self.connections + 1
        self.connected.set()
        log.info("connected to the broker", extra={"broker": self._place.host, "prefix": self._place.prefix})
        try:
            async for _ in client.messages:  # nothing is subscribed to: it ends when the connection does
                pass
        except asyncio.CancelledError:
            with suppress(MqttError, TimeoutError):
                async with asyncio.timeout(GOODBYE_WITHIN):
                    await self._send(client, status, _encoded({"state": "ended"}), _AT_LEAST_ONCE, retained=True)
            raise
        finally:
            self._client = None
            self.connected.clear()

    async def _send(self, client: Client, path: str, payload: bytes, qos: int, *, retained: bool = False) -> None:
        """Publish a message; raises TimeoutError, and MqttError."""
        async with asyncio.timeout(self._patience):
            # The limit of the library is none: with one it waits by asyncio.wait_for, which in Python 3.11 swallows a
            # cancellation that comes in the moment in which the broker answers.
            await client.publish(f"{self._place.prefix}/{path}", payload, qos, retained, timeout=math.inf)

    def _new_client(self) -> Client:
        place = self._place
        will = Will(f"{place.prefix}/{topic_path('status')}", _encoded({"state": "gone"}), _AT_LEAST_ONCE, retain=True)
        return Client(
            place.host,
            place.port,
            username=place.user or None,
            password=place.password or None,
            protocol=ProtocolVersion.V5,
            will=will,
            keepalive=MQTT_KEEPALIVE,
            timeout=self._patience,
            tls_context=self._trusted() if place.tls else None,
        )

    def _trusted(self) -> ssl.SSLContext:
        trusted = believing(self._place.authority)
        if self._place.cert is not None:
            trusted.load_cert_chain(self._place.cert, self._place.key)
        return trusted


def _heed_cancellation() -> None:
    """Raise asyncio.CancelledError where this task was cancelled in the moment in which the library was connected.

    The library waits for that by asyncio.wait_for, which in Python 3.11 swallows such a cancellation.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def _encoded(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()
