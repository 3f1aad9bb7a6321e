"""Figures for a broker: what waits in the queue of each pool, and, where that is wanted, what each node uses."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from console.events.mqtt.broker import Broker
from console.events.mqtt.topics import topic_path
from console.upstream.queue_lines import queue_lines
from muster.client.client import Client
from muster.documents import document
from muster.domain.errors import MusterError
from muster.domain.fleet.standing_view import QueueLine
from muster.domain.ids import NodeId
from muster.domain.telemetry.sample import NodeSample, Sample

log = logging.getLogger(__name__)

QUEUE_PUBLISHED_EVERY = 10.0
"""Seconds between two looks at the queue for a broker."""


class NodeFigures:
    """What nodes use, published as it comes; of each node the newest sample alone waits."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._newest: dict[NodeId, Sample] = {}
        self._heard = asyncio.Event()

    def hear(self, batch: Sequence[NodeSample]) -> None:
        """Take in what nodes use."""
        self._newest |= {each.node: each.sample for each in batch}
        self._heard.set()

    async def run(self) -> None:
        """Publish until cancelled; what the broker is not there for is gone."""
        while True:
            await self._heard.wait()
            self._heard.clear()
            newest, self._newest = self._newest, {}
            for node, sample in newest.items():
                told = json.dumps(document(sample), separators=(",", ":")).encode()
                await self._broker.offer(topic_path("nodeTelemetry", node=node), told)


class QueueFigures:
    """How much waits in each pool, published when it is other than before."""

    def __init__(
        self, broker: Broker, client: Callable[[], Awaitable[Client]], pause: float = QUEUE_PUBLISHED_EVERY
    ) -> None:
        self._broker = broker
        self._client = client
        self._pause = pause

    async def run(self) -> None:
        """Look and publish until cancelled, whatever becomes of the coordinator and the broker."""
        published: tuple[int, Mapping[str, Any]] | None = None
        while True:
            await self._broker.connected.wait()
            try:
                now = self._broker.connections, waiting_by_pool(await queue_lines(await self._client()))
            except MusterError as error:
                log.debug("the queue cannot be read", extra={"cause": str(error)})
            else:
                told = json.dumps(now[1], separators=(",", ":")).encode()
                if now != published and (await self._broker.publish(topic_path("queue"), told, retained=True)).taken:
                    published = now
            await asyncio.sleep(self._pause)


def waiting_by_pool(lines: Iterable[QueueLine]) -> Mapping[str, Any]:
    """Jobs and GPUs that wait, in all and by pool."""
    pools: dict[str, dict[str, float]] = {}
    for line in lines:
        pool = pools.setdefault(line.pool, {"jobs": 0, "gpus": 0.0})
        pool["jobs"] += 1
        pool["gpus"] += line.size.gpus / 1000
    return {
        "jobs": sum(pool["jobs"] for pool in pools.values()),
        "gpus": sum(pool["gpus"] for pool in pools.values()),
        "pools": {name: pools[name] for name in sorted(pools)},
    }
