"""States for a broker: each job and node as a retained message, which is published anew when it changes."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Any

from console.events.mqtt.broker import Broker
from console.events.mqtt.topics import topic_path
from console.events.outbox import EventOutbox
from muster.client.client import Client
from muster.documents import document
from muster.domain.errors import MusterError, UnknownNameError
from muster.domain.event import JobEvent, NodeEvent
from muster.domain.fleet.node import NodeView
from muster.domain.ids import JobId, NodeId
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.view import JobView
from muster.domain.notifications.happening import Happening

log = logging.getLogger(__name__)

ENDED_SHOWN_FOR = 3600.0
"""Seconds for which a job that has ended has a state."""
STATES_LOOKED_AT_EVERY = 60.0
"""Seconds after which states of ended jobs are looked at."""
STATES_AGAIN_AFTER = 5.0
"""Seconds after which states are published anew, when the coordinator or the broker had an error."""


class StatePublisher:
    """Publishes states; what waits is the name of each job and node that changed."""

    def __init__(
        self,
        broker: Broker,
        outbox: EventOutbox,
        client: Callable[[], Awaitable[Client]],
        *,
        ended_for: float = ENDED_SHOWN_FOR,
        look: float = STATES_LOOKED_AT_EVERY,
        again: float = STATES_AGAIN_AFTER,
    ) -> None:
        self._broker = broker
        self._outbox = outbox
        self._client = client
        self._ended_for = ended_for
        self._look = look
        self._again = again
        self._jobs: dict[JobId, str] = {}
        """Jobs that have changed, and their projects."""
        self._nodes: set[NodeId] = set()
        self._ended: dict[str, float] = {}
        """Topics of ended jobs, and when they go."""
        self._changed = asyncio.Event()

    def changed(self, told: Sequence[Happening]) -> None:
        """Hear what has happened."""
        for each in told:
            match each.event:
                case JobEvent(job=job) if each.job is not None:
                    self._jobs[job] = each.job.project
                case NodeEvent(node=node):
                    self._nodes.add(node)
                case _:
                    continue
            self._changed.set()

    async def run(self) -> None:
        """Publish until cancelled."""
        while True:
            try:
                await self._follow()
            except _StateError as error:
                log.warning("states are published anew", extra={"cause": str(error)})
            except MusterError as error:
                log.warning("states cannot be read", extra={"cause": str(error)})
            await asyncio.sleep(self._again)

    async def _follow(self) -> None:
        """Publish everything, and then what changes, until the connection is another one."""
        await self._broker.connected.wait()
        connection, client = self._broker.connections, await self._client()
        await self._publish_all(client)
        while connection == self._broker.connections:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._look):
                    await self._changed.wait()
            self._changed.clear()
            jobs, self._jobs = self._jobs, {}
            nodes, self._nodes = self._nodes, set()
            try:
                await self._publish_changed(client, jobs, nodes)
                await self._take_ended_away()
            except BaseException:
                self._jobs, self._nodes = jobs | self._jobs, nodes | self._nodes
                raise

    async def _publish_all(self, client: Client) -> None:
        """Every job that has not ended, and every node; what was published before and is no more is taken away."""
        known = set(await asyncio.to_thread(self._outbox.retained))
        there = set()
        async with aclosing(client.jobs.list(phases=[phase for phase in JobPhase if not phase.ended])) as jobs:
            async for job in jobs:
                there.add(_topic_of(job.spec.project, job.id))
                await self._put(_topic_of(job.spec.project, job.id), job_state(job))
        for node in await client.nodes.list():
            there.add(topic_path("nodeState", node=node.name))
            await self._put(topic_path("nodeState", node=node.name), node_state(node))
        for topic in sorted(known - there - self._ended.keys()):
            await self._put(topic, None)

    async def _publish_changed(self, client: Client, jobs: Mapping[JobId, str], nodes: set[NodeId]) -> None:
        for job, project in jobs.items():
            topic = _topic_of(project, job)
            view = await _found(client.jobs.get(job))
            await self._put(topic, None if view is None else job_state(view))
            if view is not None and view.phase.ended:
                self._ended[topic] = asyncio.get_running_loop().time() + self._ended_for
        for node in nodes:
            found = await _found(client.nodes.get(node))
            await self._put(topic_path("nodeState", node=node), None if found is None else node_state(found))

    async def _take_ended_away(self) -> None:
        now = asyncio.get_running_loop().time()
        for topic in [topic for topic, until in self._ended.items() if until <= now]:
            await self._put(topic, None)
            del self._ended[topic]

    async def _put(self, topic: str, state: Mapping[str, Any] | None) -> None:
        """Publish a state, or take it away; raises _StateError where the broker does not take it."""
        if state is not None:
            await asyncio.to_thread(self._outbox.retain, topic)
        payload = b"" if state is None else json.dumps(document(state), separators=(",", ":")).encode()
        answer = await self._broker.publish(topic, payload, retained=True)
        if not answer.taken:
            raise _StateError(answer.told)
        if state is None:
            await asyncio.to_thread(self._outbox.release, topic)


class _StateError(Exception):
    """The broker has not taken a state."""


def job_state(job: JobView) -> Mapping[str, Any]:
    """What is told of a job: no command, environment or output."""
    return {
        "id": job.id,
        "name": job.spec.name,
        "project": job.spec.project,
        "owner": job.owner,
        "labels": job.spec.labels,
        "phase": job.phase,
        "summary": job.summary,
        "size": job.spec.size,
        "attempt": max((attempt.number for attempt in job.attempts), default=1),
        "submitted_at": job.submitted_at,
        "started_at": job.started_at,
        "ended_at": job.ended_at,
    }


def node_state(node: NodeView) -> Mapping[str, Any]:
    """What is told of a node."""
    return {
        "name": node.name,
        "state": node.state,
        "pool": node.pool,
        "cordoned": node.cordon is not None,
        "gpus": len(node.inventory.gpus),
        "gpus_taken": len(node.gpus_taken),
        "executions": len(node.executions),
        "agent_version": node.agent_version,
    }


def _topic_of(project: str, job: JobId) -> str:
    return topic_path("jobState", project=project, job=job)


async def _found(asked: Awaitable[Any]) -> Any:  # noqa: ANN401 - a job or a node
    """What is found; None: it is not there."""
    try:
        return await asked
    except UnknownNameError:
        return None
