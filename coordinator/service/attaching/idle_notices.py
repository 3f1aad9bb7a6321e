"""Notices for those who are attached to a job that is about to be stopped because nobody uses it."""

import asyncio
import logging
from collections.abc import Collection, Mapping
from datetime import datetime

from coordinator.core.cluster.cluster import Cluster
from coordinator.engine.engine import Engine, Freshness
from coordinator.service.attaching.lines import AgentLines
from coordinator.service.attaching.open_book import AttachmentBook
from coordinator.signals import Listener
from coordinator.views.idle import idle_outlook
from muster.domain.attachments.request import NoticeForAttached
from muster.domain.errors import MusterError
from muster.domain.ids import JobId, NodeId

log = logging.getLogger(__name__)


class IdleNotices:
    """Hears of the jobs to which somebody is attached, and of no others."""

    def __init__(self, engine: Engine, book: AttachmentBook, lines: AgentLines) -> None:
        self._engine = engine
        self._book = book
        self._lines = lines
        self._listener = Listener()
        self._told: dict[JobId, str] = {}
        """Jobs to which somebody is attached, each with what was told of it last; empty: nothing was."""

    def attached(self, job: JobId) -> None:
        """Somebody has attached to a job."""
        if job not in self._told:
            self._told[job] = ""
            self._engine.signals.follow(self._listener, job)

    def left(self, job: JobId) -> None:
        """An attachment to a job has ended, perhaps the last one."""
        if job in self._told and not self._book.of_job(job):
            del self._told[job]
            self._engine.signals.unfollow(self._listener, job)

    async def tell(self) -> None:
        """Tell, whenever there is something to tell, until cancelled."""
        while True:
            try:
                await self._tell(await self._listener.wait())
            except MusterError as error:
                log.warning("those who are attached cannot be told", extra={"cause": str(error)})

    async def _tell(self, fired: Collection[object]) -> None:
        jobs = [job for job in self._told if job in fired]

        def find(cluster: Cluster, _: datetime) -> Mapping[JobId, str]:
            return {job: _notice(cluster, job) for job in jobs}

        notices = await self._engine.query(find, after=Freshness.COMMITTED)
        async with asyncio.TaskGroup() as tasks:
            for job, text in notices.items():
                if self._told.get(job, text) != text:
                    self._told[job] = text
                    if text:
                        for node, attachments in self._places(job).items():
                            notice = NoticeForAttached(attachments=attachments, text=text)
                            tasks.create_task(self._send(node, notice), name=f"tell the attached on {node}")

    def _places(self, job: JobId) -> Mapping[NodeId, tuple[str, ...]]:
        """The attachments of a job by node."""
        places: dict[NodeId, tuple[str, ...]] = {}
        for held in self._book.of_job(job):
            places[held.opened.node] = (*places.get(held.opened.node, ()), held.attachment)
        return places

    async def _send(self, node: NodeId, notice: NoticeForAttached) -> None:
        try:
            await self._lines.order(node, notice)
        except MusterError as error:
            log.warning("those who are attached are not told", extra={"node": node, "cause": str(error)})


def _notice(cluster: Cluster, job: JobId) -> str:
    """What those who are attached to a job are told of it; empty: nothing."""
    if job not in cluster.jobs:
        return ""
    outlook = idle_outlook(cluster, job, soon=True)
    return f"{cluster.jobs[job].spec.name} {outlook}" if outlook else ""
