"""Follows: streams of the coordinator about single jobs, each for all viewers who want the same."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, assert_never

from console.mirror.rows import EncodedJson
from console.watched.kept import LOG_LINES_KEPT, POINTS_KEPT, KeptJob, KeptLines, KeptNews, KeptPoints
from console.watched.wish import WatchedPart, WatchWish
from muster.client.client import Client
from muster.domain.errors import ExhaustedError, MusterError, UnknownNameError
from muster.domain.telemetry.point import POINTS

log = logging.getLogger(__name__)

FOLLOWS_AT_ONCE = 500
"""Different streams about jobs that a console follows for its viewers."""
RANKS_WATCHED = 64
"""Ranks of a job whose points viewers are told, the first ones."""
FOLLOWED_AGAIN_AFTER = 5.0
"""Seconds until a stream about a job is followed again that has broken."""


@dataclass(slots=True)
class SharedFollow:
    """One stream about a job, while anybody looks."""

    kept: KeptNews[Any]
    viewers: set[asyncio.Event] = field(default_factory=set)
    """What is set whenever there is news; one for each viewer."""
    task: "asyncio.Task[None] | None" = None


class ViewedFollow:
    """How far one viewer of a stream about a job has come."""

    def __init__(self, kept: KeptNews[Any]) -> None:
        self._kept = kept
        self._known = -1

    def news(self) -> EncodedJson | None:
        """What the viewer does not know yet; None: there is nothing."""
        found = self._kept.since(self._known)
        if found is not None:
            self._known = self._kept.newest
        return found


class SharedFollows:
    """All streams about jobs that somebody looks at."""

    def __init__(self, client: Client, most: int = FOLLOWS_AT_ONCE, pause: float = FOLLOWED_AGAIN_AFTER) -> None:
        """`client` asks with the console's own token; who may look at what is for its users to ask."""
        self._client = client
        self._most = most
        self._pause = pause
        self._follows: dict[WatchWish, SharedFollow] = {}

    @property
    def count(self) -> int:
        """How many streams there are."""
        return len(self._follows)

    @asynccontextmanager
    async def viewing(self, wish: WatchWish, size: int, heard: asyncio.Event) -> AsyncIterator[ViewedFollow]:
        """Look at a job of `size` executions; `heard` is set at news. Raises ExhaustedError where too many look."""
        shared = self._follows.get(wish)
        if shared is None:
            if len(self._follows) >= self._most:
                raise ExhaustedError(f"this console follows {self._most} streams of jobs for others; try again later")
            kept, follow = self._followed(wish, size)
            shared = self._follows[wish] = SharedFollow(kept)
            shared.task = asyncio.create_task(self._run(wish, shared, follow), name=f"{wish.part} of {wish.job}")
        shared.viewers.add(heard)
        try:
            yield ViewedFollow(shared.kept)
        finally:
            shared.viewers.discard(heard)
            if not shared.viewers:
                del self._follows[wish]
                assert shared.task is not None, "it was begun with its first viewer"
                shared.task.cancel()
                await asyncio.wait([shared.task])

    async def _run(
        self, wish: WatchWish, shared: SharedFollow, follow: Callable[[], AsyncGenerator[Any, None]]
    ) -> None:
        """Follow until the job has nothing more to tell; what was told before stays there for its viewers."""
        while True:
            try:
                async with aclosing(follow()) as told:
                    async for each in told:
                        shared.kept.take(each)
                        for heard in shared.viewers:
                            heard.set()
            except UnknownNameError:
                return  # it was deleted
            except MusterError as error:
                log.warning("a job is followed again", extra={"job": wish.job, "what": wish.part, "cause": str(error)})
            else:
                return
            await asyncio.sleep(self._pause)
            shared.kept.begin_anew()

    def _followed(self, wish: WatchWish, size: int) -> tuple[KeptNews[Any], Callable[[], AsyncGenerator[Any, None]]]:
        """What is kept of a wish, and the stream that tells of it."""
        client, job = self._client, wish.job
        match wish.part:
            case WatchedPart.JOB:
                return KeptJob(wish), lambda: client.jobs.watch(job)
            case WatchedPart.LOGS:
                tail = max(1, LOG_LINES_KEPT // size)
                return KeptLines(wish), lambda: client.jobs.logs(job, tail=tail, follow=True)
            case WatchedPart.POINTS:
                ranks = range(min(size, RANKS_WATCHED))
                most = min(POINTS, POINTS_KEPT // len(ranks))
                return KeptPoints(wish), lambda: client.metrics.follow(job, ranks=ranks, keys=[wish.key], most=most)
            case _:
                assert_never(wish.part)
