"""The engine: the one task that owns the cluster. It takes all pending events, steps each, commits once, then acts.

Nobody is answered before what was asked for is durable, and nobody reads what is not.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from datetime import datetime
from enum import Enum, auto
from typing import TypeVar

from coordinator.clock import SteadyClock
from coordinator.core.answers import Answer
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.effects import AnnounceJob, AnnounceStory, CloseSession, Effect, ForgetLogs, SendPlan
from coordinator.core.events import Event
from coordinator.core.loading import load
from coordinator.core.step import finish, step
from coordinator.core.turn.batching import HOLD, OpenTurn
from coordinator.engine.agent_streams import AgentStreams
from coordinator.engine.changed_records import EngineSignals
from coordinator.engine.inbox import AskedEvents, AskedQuestion, EngineInbox, Request
from coordinator.engine.recovery import REST, StoreRecovery
from coordinator.engine.work_counts import WorkCounts
from coordinator.signals import ANY_STORY
from coordinator.store.store import Snapshot, Store, StoreError, snapshot_of
from coordinator.story.changes import event_changes
from coordinator.story.lines import lines
from coordinator.story.moves import Told, told
from muster.domain.errors import ExhaustedError
from muster.domain.fleet.access import Project
from muster.domain.ids import JobId

log = logging.getLogger(__name__)

T = TypeVar("T")


class Freshness(Enum):
    """How much of what happened before a question its answer takes into account."""

    EVERYTHING = auto()
    """All events that stand in line before it."""
    COMMITTED = auto()
    """The last commit, without waiting for events that are still in line."""


class Engine:
    """Owns the cluster; everybody else sends events and questions."""

    def __init__(
        self,
        store: Store,
        forget_logs: Callable[[JobId], None],
        fleet_key: bytes = b"",
        hold: float = HOLD,
        rest: float = REST,
    ) -> None:
        """`fleet_key`: the secret from which the agents of each attempt get theirs; empty only in tests."""
        self._store = store
        self._hold = hold
        self._forget_logs = forget_logs
        self._fleet_key = fleet_key
        self._clock = SteadyClock()
        self._cluster = self._loaded(store.load())
        self._inbox = EngineInbox()
        self._open: OpenTurn[Request] | None = None
        """The turn that is under way; while there is one the cluster may hold what is not durable."""
        self._recovery = StoreRecovery(store, rest)
        """Under way after a failure of the store; until it ends events are refused and questions answered."""
        self.work = WorkCounts(lambda: self._inbox.waiting)
        self.streams = AgentStreams()
        self.signals = EngineSignals()
        self.signals.loaded(self._cluster)

    @property
    def projects(self) -> Mapping[str, Project]:
        """The projects that there are at this very moment; who makes a promise of one queries it."""
        return self._cluster.projects

    def known_jobs(self) -> frozenset[JobId]:
        """The jobs that were loaded; for the start, before `run`."""
        return frozenset(self._cluster.jobs)

    def projects_of_jobs(self) -> Mapping[JobId, str]:
        """The projects of the jobs that were loaded; for the start, before `run`."""
        return {job.id: job.spec.project for job in self._cluster.jobs.values()}

    async def apply(self, event: Event) -> Answer:
        """Have an event taken in; the answer comes when it is durable.

        Raises ExhaustedError if it cannot be stored, and UnavailableError once the engine has ended.
        """
        [answer] = await self.apply_all((event,))
        return answer

    async def apply_all(self, events: Sequence[Event]) -> list[Answer]:
        """Have several events taken in, one after the other in one turn; as `apply` for each."""
        answers: asyncio.Future[list[Answer]] = asyncio.get_running_loop().create_future()
        await self._inbox.put(AskedEvents(events, answers))
        return await answers

    async def apply_and_query(self, event: Event, question: Callable[[Cluster, Answer], T]) -> T:
        """Have an event taken in, and what a function says of the answer and the cluster, both as they durably are."""
        answers: asyncio.Future[list[Answer]] = asyncio.get_running_loop().create_future()
        await self._inbox.put(AskedEvents((event,), answers))
        return await self.query(lambda cluster, _: question(cluster, answers.result()[0]))

    async def post(self, event: Event) -> None:
        """Have an event taken in; returns as soon as it is in line."""
        await self._inbox.put(AskedEvents((event,), None))

    async def query(self, question: Callable[[Cluster, datetime], T], *, after: Freshness = Freshness.EVERYTHING) -> T:
        """What a function says of the cluster, as it durably is; the function must not change it.

        Raises UnavailableError once the engine has ended.
        """
        if after is Freshness.COMMITTED and self._open is None:
            return question(self._cluster, self._clock.now())
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        asked: AskedQuestion[T] = AskedQuestion(question, answer)
        await self._inbox.put(asked)  # type: ignore[arg-type]  # the queue holds questions of every type
        return await answer

    def query_now(self, question: Callable[[Cluster], T]) -> T:
        """What a function says of the cluster at this very moment, durable or not; for what makes no promise of it."""
        return question(self._cluster)

    async def run(self) -> None:
        """Work until cancelled, whatever becomes of the store; afterwards all who ask are refused."""
        try:
            with ThreadPoolExecutor(1, thread_name_prefix="store writer") as writer:
                await self._work(writer)
        finally:
            self._recovery.cancel()
            self._inbox.end(() if self._open is None else self._open.waiting)

    async def _work(self, writer: ThreadPoolExecutor) -> None:
        while True:
            batch = await self._inbox.batch(self._wakes_at())
            if self._recovery.under_way:
                held = self._recovery.take()
                if held is None:
                    self._refuse(batch)
                    continue
                self._cluster = self._loaded(held)
                self.signals.loaded(self._cluster)
            await self._turn(batch, writer)

    def _wakes_at(self, until: float | None = None) -> float | None:
        patience = self._patience()
        if patience is None:
            return until
        due = asyncio.get_running_loop().time() + patience
        return due if until is None else min(due, until)

    def _patience(self) -> float | None:
        due = self._cluster.deadlines.next_at
        if due is None or self._recovery.under_way:
            return None
        return max((due - self._clock.now()).total_seconds(), 0.0)

    async def _turn(self, batch: list[Request], writer: ThreadPoolExecutor) -> None:
        clock = asyncio.get_running_loop().time
        until = clock() + self._hold
        now = self._clock.now()
        opened: OpenTurn[Request] = OpenTurn(self._cluster, now, until, step, finish)
        turn, self._open = opened.turn, opened
        self.work.turned()
        opened.take(batch, now)  # 1 step
        while opened.stays_open(clock()):
            opened.take(await self._inbox.batch(self._wakes_at(until)), self._clock.now())
        stories = told(turn.notes.taken)
        changes = (*turn.changes(), *event_changes(self._cluster, stories, turn.now))
        if changes:
            began = clock()
            try:
                await asyncio.get_running_loop().run_in_executor(writer, self._store.commit, changes)  # 2 commit
            except StoreError as error:
                self._go_back(opened, error, writer)
                return
            self.work.commits.add(clock() - began)
        # 3 answer, perform: who asked goes on first, and does not wait until every agent of a gang has its plan.
        for asked, answers in opened.answered():
            asked.reply(answers, self._cluster, turn.now)
        effects = turn.take_effects()
        for effect in effects:
            self._perform(effect)
        self.signals.turned(self._cluster, changes, effects, turn.notes.retold)
        self._tell(stories)
        self._open = None
        if changes:
            await asyncio.sleep(0)  # who was told of them looks at them before there are others

    def _go_back(self, opened: OpenTurn[Request], error: StoreError, writer: Executor) -> None:
        """Forget what could not be stored: be as after a restart, with what was stored before this turn.

        Nobody was told of it, and agents that open new streams tell again what they know. The records are those in
        memory, as the store may be unable to say anything. What it holds is read before events are taken in again:
        a database that fails at a commit need not know whether it kept it.
        """
        log.warning("nothing new can be stored", extra={"cause": str(error)})
        self._cluster = self._loaded(snapshot_of(opened.turn.before()))
        self._open = None
        self.streams.close_all()
        self._recovery.begin(error, writer, self._inbox.wake)
        self._refuse(opened.waiting)

    def _refuse(self, batch: list[Request]) -> None:
        """Answer questions all the same."""
        for each in batch:
            if isinstance(each, AskedEvents):
                each.refuse(ExhaustedError(self._recovery.reason))
            else:
                each.reply([], self._cluster, self._clock.now())

    def _tell(self, stories: Sequence[Told]) -> None:
        """Write what a turn did into the journal."""
        if not log.isEnabledFor(logging.INFO):
            return
        for line in lines(self._cluster, stories):
            log.log(logging.DEBUG if line.debug else logging.INFO, line.sentence, extra=line.fields)

    def _perform(self, effect: Effect) -> None:
        match effect:
            case SendPlan():
                self.streams.send(effect)
            case CloseSession():
                self.streams.close(effect.session)
            case AnnounceJob():
                self.signals.fire(effect.job)
                self.signals.fire(ANY_STORY)
            case AnnounceStory():
                self.signals.fire(effect.subject)
                self.signals.fire(ANY_STORY)
            case ForgetLogs():
                self._forget_logs(effect.job)

    def _loaded(self, kept: Snapshot) -> Cluster:
        return load(kept.records, self._clock.now(), self._fleet_key)
