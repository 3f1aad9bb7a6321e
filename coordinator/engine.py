"""The engine: the one task that owns the cluster. It takes all pending events, steps each, commits once, then acts.

Nobody is answered before what was asked for is durable, and nobody reads what is not.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from enum import Enum, auto
from typing import Generic, TypeVar

from coordinator.clock import SteadyClock
from coordinator.core.answers import Answer
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.effects import AnnounceJob, CloseSession, Effect, ForgetLogs, SendPlan
from coordinator.core.events import Event
from coordinator.core.loading import load
from coordinator.core.records import Record
from coordinator.core.step import finish, step
from coordinator.core.turn.batching import BATCH, HOLD, OpenTurn
from coordinator.core.turn.turn import Turn
from coordinator.signals import Signals
from coordinator.store.store import Snapshot, Store, StoreError, snapshot_of
from coordinator.story.job_events import event_changes
from coordinator.story.lines import lines
from coordinator.story.moves import Told, told
from muster.domain.errors import ExhaustedError, MusterError, UnavailableError
from muster.domain.fleet.access import Project
from muster.domain.gangs.plan import Plan
from muster.domain.ids import JobId

log = logging.getLogger(__name__)

T = TypeVar("T")

QUEUE = 20_000
"""Most waiting events; who has more waits."""
MOST_PLANS_WAITING = 1000
"""Most plans that wait for an agent that does not read; then its stream is closed and it starts over."""
REST = 1.0
"""Seconds between a failure of the store and the next look at it, until it can be read again."""


class Freshness(Enum):
    """How much of what happened before a question its answer takes into account."""

    EVERYTHING = auto()
    """All events that stand in line before it."""
    COMMITTED = auto()
    """The last commit, without waiting for events that are still in line."""


class _Asked:
    """Events, most often one, and who waits for their answers."""

    def __init__(self, events: Sequence[Event], answer: "asyncio.Future[list[Answer]] | None") -> None:
        self.events = events
        self.answer = answer

    @property
    def waited_for(self) -> bool:
        """Whether somebody waits for the answers."""
        return self.answer is not None

    def reply(self, answers: list[Answer], cluster: Cluster, now: datetime) -> None:
        """Tell whoever waits what came of the events."""
        del cluster, now
        if self.answer is not None and not self.answer.done():
            self.answer.set_result(answers)

    def refuse(self, error: MusterError) -> None:
        """Nothing came of them, or nobody will say what did."""
        if self.answer is not None and not self.answer.done():
            self.answer.set_exception(error)
            self.answer.exception()  # counts as heard: `apply_and_query` may hear it of its question instead


class _Question(Generic[T]):
    """Something to be read once everything before it is durable."""

    def __init__(self, read: Callable[[Cluster, datetime], T], answer: "asyncio.Future[T]") -> None:
        self.read = read
        self.answer = answer

    events: Sequence[Event] = ()
    waited_for = True

    def reply(self, answers: list[Answer], cluster: Cluster, now: datetime) -> None:
        """Read and answer, unless nobody waits any more; a fault is the asker's to handle."""
        del answers
        if self.answer.done():
            return
        try:
            self.answer.set_result(self.read(cluster, now))
        except Exception as error:  # noqa: BLE001 - handed on to the asker, the engine goes on
            self.answer.set_exception(error)

    def refuse(self, error: MusterError) -> None:
        """Tell whoever waits that it will not be read."""
        if not self.answer.done():
            self.answer.set_exception(error)


class AgentStream:
    """The open stream of one agent: plans that are to be sent."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.outbox: asyncio.Queue[Plan] = asyncio.Queue(MOST_PLANS_WAITING)
        self.closed = asyncio.Event()
        """Set when the engine wants the stream to end."""


class Engine:
    """Owns the cluster; everybody else sends events and questions."""

    def __init__(
        self, store: Store, forget_logs: Callable[[JobId], None], fleet_key: bytes = b"", hold: float = HOLD
    ) -> None:
        """`fleet_key`: the secret from which the agents of each attempt get theirs; empty only in tests."""
        self._store = store
        self._hold = hold
        self._forget_logs = forget_logs
        self._fleet_key = fleet_key
        self._clock = SteadyClock()
        self._cluster = self._loaded(store.load())
        self._inbox: asyncio.Queue[_Asked | _Question[object]] = asyncio.Queue(QUEUE)
        self._taken: list[_Asked | _Question[object]] = []
        """Events and questions of the turn that is under way for which somebody waits."""
        self._in_turn = False
        """Whether the cluster may hold what is not durable."""
        self._sessions: dict[int, AgentStream] = {}
        self._last_session = 0
        self._sick = ""
        """Why the store could not keep or read what it was last asked for."""
        self._recovery: asyncio.Task[Snapshot] | None = None
        """Reads what the store holds after a failure; until then events are refused and questions answered."""
        self._ended = False
        self.signals = Signals()

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
        await self._line_up(_Asked(events, answers))
        return await answers

    async def apply_and_query(self, event: Event, question: Callable[[Cluster, Answer], T]) -> T:
        """Have an event taken in, and what a function says of the answer and the cluster, both as they durably are."""
        answers: asyncio.Future[list[Answer]] = asyncio.get_running_loop().create_future()
        await self._line_up(_Asked((event,), answers))
        return await self.query(lambda cluster, _: question(cluster, answers.result()[0]))

    async def post(self, event: Event) -> None:
        """Have an event taken in; returns as soon as it is in line."""
        await self._line_up(_Asked((event,), None))

    async def query(self, question: Callable[[Cluster, datetime], T], *, after: Freshness = Freshness.EVERYTHING) -> T:
        """What a function says of the cluster, as it durably is; the function must not change it.

        Raises UnavailableError once the engine has ended.
        """
        if after is Freshness.COMMITTED and not self._in_turn:
            return question(self._cluster, self._clock.now())
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        asked: _Question[T] = _Question(question, answer)
        await self._line_up(asked)  # type: ignore[arg-type]  # the queue holds questions of every type
        return await answer

    def query_now(self, question: Callable[[Cluster], T]) -> T:
        """What a function says of the cluster at this very moment, durable or not; for what makes no promise of it."""
        return question(self._cluster)

    async def _line_up(self, asked: _Asked | _Question[object]) -> None:
        await self._inbox.put(asked)
        if self._ended:  # asked here, as the engine may have ended while this waited for room in its inbox
            self._turn_away()

    def open_session(self) -> AgentStream:
        """A new stream; it belongs to a node once NodeConnected with its number is accepted."""
        self._last_session += 1
        session = self._sessions[self._last_session] = AgentStream(self._last_session)
        return session

    def end_session(self, session: AgentStream) -> None:
        """A stream has ended."""
        self._sessions.pop(session.number, None)

    async def run(self) -> None:
        """Work until cancelled, whatever becomes of the store; afterwards all who ask are refused."""
        try:
            with ThreadPoolExecutor(1, thread_name_prefix="store writer") as writer:
                await self._work(writer)
        finally:
            if self._recovery is not None:
                self._recovery.cancel()
            self._ended = True
            self._turn_away()

    async def _work(self, writer: ThreadPoolExecutor) -> None:
        while True:
            batch = await self._batch()
            if self._recovery is not None:
                if not self._recovery.done():
                    self._refuse(batch)
                    continue
                self._cluster, self._recovery = self._loaded(self._recovery.result()), None
            await self._turn(batch, writer)

    async def _batch(self, until: float | None = None) -> list[_Asked | _Question[object]]:
        """All that waits: at least one, or nothing if a deadline or that time comes first."""
        batch: list[_Asked | _Question[object]] = []
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self._wakes_at(until)):
                batch.append(await self._inbox.get())
        while len(batch) < BATCH and not self._inbox.empty():
            batch.append(self._inbox.get_nowait())
        return batch

    def _wakes_at(self, until: float | None) -> float | None:
        patience = self._patience()
        if patience is None:
            return until
        due = asyncio.get_running_loop().time() + patience
        return due if until is None else min(due, until)

    def _patience(self) -> float | None:
        due = self._cluster.deadlines.next_at
        if due is None or self._recovery is not None:
            return None
        return max((due - self._clock.now()).total_seconds(), 0.0)

    async def _turn(self, batch: list[_Asked | _Question[object]], writer: ThreadPoolExecutor) -> None:
        clock = asyncio.get_running_loop().time
        until = clock() + self._hold
        now = self._clock.now()
        opened: OpenTurn[_Asked | _Question[object]] = OpenTurn(self._cluster, now, until, step, finish)
        turn, self._taken, self._in_turn = opened.turn, opened.waiting, True
        opened.take(batch, now)  # 1 step
        while opened.stays_open(clock()):
            opened.take(await self._batch(until), self._clock.now())
        stories = told(turn.notes.taken)
        changes = (*turn.changes(), *event_changes(self._cluster, stories, turn.now))
        if changes:
            try:
                await asyncio.get_running_loop().run_in_executor(writer, self._store.commit, changes)  # 2 commit
            except StoreError as error:
                self._go_back(turn, error, writer)
                return
        # 3 answer, perform: who asked goes on first, and does not wait until every agent of a gang has its plan.
        for asked, answers in opened.answered():
            asked.reply(answers, self._cluster, turn.now)
        for effect in turn.take_effects():
            self._perform(effect)
        self._tell(stories)
        self._in_turn = False
        if changes:
            await asyncio.sleep(0)  # who was told of them looks at them before there are others

    def _go_back(self, turn: Turn, error: StoreError, writer: Executor) -> None:
        """Forget what could not be stored: be as after a restart, with what was stored before this turn.

        Nobody was told of it, and agents that open new streams tell again what they know. The records are those in
        memory, as the store may be unable to say anything. What it holds is read before events are taken in again:
        a database that fails at a commit need not know whether it kept it.
        """
        log.warning("nothing new can be stored", extra={"cause": str(error)})
        self._cluster = self._loaded(snapshot_of(turn.before()))
        self._in_turn = False
        for session in self._sessions.values():
            session.closed.set()
        self._sick = f"the coordinator can store nothing new: {error}"
        self._recovery = asyncio.create_task(self._stored(writer), name="store")
        self._recovery.add_done_callback(self._wake)
        self._refuse(self._taken)

    async def _stored(self, writer: Executor) -> Snapshot:
        """What the store holds; asked for once a second until there is an answer."""
        told = ""
        while True:
            await asyncio.sleep(REST)
            try:
                return await asyncio.get_running_loop().run_in_executor(writer, self._store.load)
            except StoreError as error:
                self._sick = f"the coordinator can store nothing new: {error}"
                if str(error) != told:  # once a second it is no news
                    log.warning("the state cannot be read; trying once a second", extra={"cause": str(error)})
                    told = str(error)

    def _wake(self, _: "asyncio.Task[Snapshot]") -> None:
        """Have the engine look round; one whose inbox is full does so anyway."""
        with suppress(asyncio.QueueFull):
            self._inbox.put_nowait(_Asked((), None))

    def _refuse(self, batch: list[_Asked | _Question[object]]) -> None:
        """Answer questions all the same."""
        for each in batch:
            if isinstance(each, _Asked):
                each.refuse(ExhaustedError(self._sick))
            else:
                each.reply([], self._cluster, self._clock.now())

    def _turn_away(self) -> None:
        """Leave nobody waiting for an engine that has ended; what was committed last is told by the next one."""
        waiting, self._taken = self._taken, []
        while not self._inbox.empty():
            waiting.append(self._inbox.get_nowait())
        for each in waiting:
            each.refuse(UnavailableError("the coordinator has ended; ask again once it is back"))

    def _tell(self, stories: Sequence[Told]) -> None:
        """Write what a turn did into the journal."""
        if not log.isEnabledFor(logging.INFO):
            return
        for line in lines(self._cluster, stories):
            log.log(logging.DEBUG if line.debug else logging.INFO, line.sentence, extra=line.fields)

    def _perform(self, effect: Effect) -> None:
        match effect:
            case SendPlan():
                self._send(effect)
            case CloseSession():
                self._close(effect.session)
            case AnnounceJob():
                self.signals.fire(effect.job)
            case ForgetLogs():
                self._forget_logs(effect.job)

    def _send(self, effect: SendPlan) -> None:
        session = self._sessions.get(effect.session)
        if session is None:
            return
        try:
            session.outbox.put_nowait(effect.plan)
        except asyncio.QueueFull:
            log.warning("agent does not read its plans; closing its stream", extra={"node": effect.node})
            session.closed.set()

    def _close(self, number: int) -> None:
        session = self._sessions.get(number)
        if session is not None:
            session.closed.set()

    def _loaded(self, kept: Snapshot) -> Cluster:
        records: list[Record] = [*kept.projects, *kept.jobs, *kept.attempts, *kept.executions, *kept.nodes]
        return load(records, self._clock.now(), self._fleet_key)
