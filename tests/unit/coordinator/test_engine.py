"""The engine: one writer, one commit for many events, and not a word before it is durable."""

import asyncio
import math
from collections.abc import Sequence
from contextlib import suppress

import pytest

from coordinator.core.answers import Accepted, Answer, Noted, Refused
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.events import (
    DeleteRequested,
    ExecutionsReported,
    HeartbeatReceived,
    JobSubmitted,
    NodeDisconnected,
    StopRequested,
)
from coordinator.core.records import Change, Put
from coordinator.engine.agent_streams import MOST_PLANS_WAITING
from coordinator.engine.engine import Engine
from coordinator.store.records.memory import MemoryStore
from muster.domain.errors import UnavailableError
from muster.domain.fleet.node import NodeState
from muster.domain.gangs.plan import Goal, Stage
from muster.domain.ids import ExecutionId, JobId
from muster.domain.jobs.lifecycle import JobPhase
from tests.builders import limits, report, spec
from tests.unit.coordinator.engines import (
    A,
    J,
    StoreThatWaits,
    all_else_has_had_its_turn,
    connection,
    engine_on,
    phase,
    submission,
    working,
)


class StoreThatCounts(MemoryStore):
    """Remembers how many records each commit had."""

    def __init__(self) -> None:
        super().__init__()
        self.commits: list[int] = []

    def commit(self, changes: Sequence[Change]) -> None:
        self.commits.append(sum(isinstance(change, Put) for change in changes))
        super().commit(changes)


def reported(rank: int, stage: Stage) -> ExecutionsReported:
    return ExecutionsReported(node=A, reports=(report(ExecutionId(f"{J}-1-{rank}"), stage),))


async def test_an_event_is_answered() -> None:
    async with working(engine := engine_on(MemoryStore())):
        answer = await engine.apply(submission())

        assert isinstance(answer, Accepted)
        assert await phase(engine) is JobPhase.QUEUED


async def test_an_event_may_come_with_a_question_that_is_read_in_the_same_turn() -> None:
    def outcome(cluster: Cluster, answer: Answer) -> tuple[type[Answer], int]:
        return type(answer), len(cluster.jobs)

    store = StoreThatCounts()
    async with working(engine := engine_on(store)):
        assert await engine.apply_and_query(submission(), outcome) == (Accepted, 1)
        assert await engine.apply_and_query(StopRequested(job=JobId("nobody")), outcome) == (Refused, 1)

    assert store.commits == [3]


async def test_nothing_is_answered_read_or_sent_before_it_is_durable() -> None:
    store = StoreThatWaits()
    engine = engine_on(store)
    session = engine.streams.open()
    async with working(engine) as tasks:
        with engine.signals.listen(J) as listener:
            waiting = [
                tasks.create_task(engine.apply(submission()), name="submit"),
                tasks.create_task(engine.apply(connection(session)), name="connect"),
                tasks.create_task(engine.query(lambda cluster, _: list(cluster.jobs)), name="read"),
                tasks.create_task(listener.wait(), name="listen"),
            ]
            await asyncio.to_thread(store.entered.wait, 60)
            await all_else_has_had_its_turn()
            assert [task.done() for task in waiting] == [False] * 4
            assert session.outbox.empty()

            store.let_go.set()
            await asyncio.wait(waiting)

    assert isinstance(waiting[0].result(), Accepted)
    assert waiting[2].result() == [J]
    assert waiting[3].result() == {J}
    assert [line.execution for line in session.outbox.get_nowait().desired] == ["j-1-0"]


async def test_a_question_that_comes_during_a_commit_waits_for_it() -> None:
    store = StoreThatWaits()
    engine = engine_on(store)
    async with working(engine) as tasks:
        tasks.create_task(engine.apply(submission()), name="submit")
        await asyncio.to_thread(store.entered.wait, 60)
        question = tasks.create_task(engine.query(lambda cluster, _: len(cluster.jobs)), name="read")
        await all_else_has_had_its_turn()
        assert not question.done()

        store.let_go.set()

        assert await question == 1


async def test_many_events_are_one_commit() -> None:
    store = StoreThatCounts()
    engine = engine_on(store)
    for number in range(50):
        await engine.post(submission(f"j{number}"))
    async with working(engine):
        assert await engine.query(lambda cluster, _: len(cluster.jobs)) == 50

    assert store.commits == [150]


async def test_reports_that_only_say_how_far_executions_are_wait_for_those_that_order_something() -> None:
    store = StoreThatCounts()
    engine = engine_on(store, hold=math.inf)
    async with working(engine):
        await engine.apply(connection(engine.streams.open()))
        await engine.apply(JobSubmitted(job=J, spec=spec(3)))
        before = len(store.commits)
        for rank in range(3):
            await engine.post(reported(rank, Stage.PREPARING))
            await all_else_has_had_its_turn()
        assert store.commits[before:] == []
        await engine.post(reported(0, Stage.PREPARED))
        await engine.post(reported(1, Stage.PREPARED))
        await all_else_has_had_its_turn()
        assert store.commits[before:] == []
        await engine.post(reported(2, Stage.PREPARED))

        assert await engine.query(lambda cluster, _: cluster.newest_attempt(J).goal) is Goal.ARM
        assert store.commits[before:] == [4]


async def test_reports_that_wait_for_nothing_else_are_committed_a_moment_later() -> None:
    store = StoreThatCounts()
    engine = engine_on(store)
    async with working(engine):
        await engine.apply(connection(engine.streams.open()))
        await engine.apply(submission())
        with engine.signals.listen(J) as listener:
            await engine.post(reported(0, Stage.PREPARING))
            assert await listener.wait() == {J}

        assert store.commits[2:] == [1]


async def test_the_events_of_one_turn_are_taken_in_the_order_in_which_they_came() -> None:
    engine = engine_on(MemoryStore())
    await engine.post(submission())
    async with working(engine):
        answer = await engine.apply(StopRequested(job=J))

    assert isinstance(answer, Accepted)
    assert answer.job.ended_at is not None


async def test_what_changes_nothing_is_not_committed() -> None:
    store = StoreThatCounts()
    engine = engine_on(store)
    async with working(engine):
        assert isinstance(await engine.apply(StopRequested(job=J)), Refused)
        await engine.query(lambda cluster, _: cluster.jobs)

    assert store.commits == []


async def test_a_fault_in_a_question_is_the_askers() -> None:
    async with working(engine := engine_on(MemoryStore())):
        with pytest.raises(KeyError):
            await phase(engine, JobId("nobody"))

        assert isinstance(await engine.apply(submission()), Accepted)


async def test_askers_who_have_gone_away_do_not_disturb() -> None:
    store = StoreThatWaits()
    engine = engine_on(store)
    async with working(engine) as tasks:
        asked = tasks.create_task(engine.apply(submission()), name="submit")
        asking = tasks.create_task(engine.query(lambda cluster, _: cluster.jobs), name="read")
        await asyncio.to_thread(store.entered.wait, 60)
        for gone in (asked, asking):
            gone.cancel()
            with suppress(asyncio.CancelledError):
                await gone
        store.let_go.set()

        assert await phase(engine) is JobPhase.QUEUED


async def test_whoever_asks_an_engine_that_has_ended_is_refused() -> None:
    async with working(engine := engine_on(MemoryStore())):
        await engine.apply(submission())

    with pytest.raises(UnavailableError, match="has ended"):
        await engine.apply(StopRequested(job=J))
    with pytest.raises(UnavailableError, match="has ended"):
        await engine.apply_and_query(StopRequested(job=J), lambda cluster, _: cluster.phase(J))
    with pytest.raises(UnavailableError, match="has ended"):
        await phase(engine)


async def test_whoever_waits_for_an_engine_when_it_ends_is_refused() -> None:
    store = StoreThatWaits()
    engine = engine_on(store)
    async with working(engine) as tasks:
        under_way = asyncio.gather(engine.apply(submission()), return_exceptions=True)
        await asyncio.to_thread(store.entered.wait, 60)
        in_line = asyncio.gather(
            engine.apply(StopRequested(job=J)),
            engine.apply_and_query(StopRequested(job=J), lambda cluster, _: cluster.phase(J)),
            phase(engine),
            return_exceptions=True,
        )
        await all_else_has_had_its_turn()
        tasks.create_task(asyncio.to_thread(store.let_go.set), name="let go once the engine is cancelled")

    outcomes = [*await under_way, *await in_line]
    assert [type(outcome) for outcome in outcomes] == [UnavailableError] * 4


async def test_an_engine_begins_with_what_is_stored() -> None:
    store = MemoryStore()
    async with working(first := engine_on(store)):
        await first.apply(submission())
    second = engine_on(store)
    assert second.known_jobs() == {J}

    async with working(second):
        assert await phase(second) is JobPhase.QUEUED


async def test_logs_are_forgotten_once_the_deletion_is_durable() -> None:
    store, forgotten = MemoryStore(), list[tuple[JobId, int]]()
    engine = engine_on(store, forget_logs=lambda job: forgotten.append((job, len(store.load().jobs))))
    async with working(engine):
        await engine.apply(submission())
        await engine.apply(DeleteRequested(job=J, force=True))

    assert forgotten == [(J, 0)]


# streams


async def test_a_new_stream_of_an_agent_ends_its_old_one() -> None:
    engine = engine_on(MemoryStore())
    old, new = engine.streams.open(), engine.streams.open()
    async with working(engine):
        await engine.apply(connection(old))
        await engine.apply(connection(new))

        assert (old.closed.is_set(), new.closed.is_set()) == (True, False)
        assert (old.outbox.qsize(), new.outbox.qsize()) == (1, 1)


async def test_a_second_agent_of_a_name_does_not_disturb_the_first() -> None:
    engine = engine_on(MemoryStore())
    first, second = engine.streams.open(), engine.streams.open()
    async with working(engine):
        await engine.apply(connection(first))
        assert isinstance(await engine.apply(connection(second, "somebody else")), Refused)
        engine.streams.end(second)
        await engine.post(NodeDisconnected(node=A, session=second.number))
        await engine.apply(submission())

        assert not first.closed.is_set()
        assert (first.outbox.qsize(), second.outbox.qsize()) == (2, 0)
        assert await engine.query(lambda cluster, _: cluster.presence[A].state) is NodeState.READY


async def test_plans_for_a_stream_that_has_just_ended_are_dropped() -> None:
    engine = engine_on(MemoryStore())
    session = engine.streams.open()
    async with working(engine):
        await engine.apply(connection(session))
        engine.streams.end(session)
        await engine.apply(submission())

    assert session.outbox.qsize() == 1


async def test_the_stream_of_an_agent_that_does_not_read_is_closed() -> None:
    engine = engine_on(MemoryStore())
    session = engine.streams.open()
    async with working(engine):
        await engine.apply(connection(session))
        for number in range(MOST_PLANS_WAITING // 2 + 1):
            await engine.apply(submission(f"j{number}", cpus=0.001))
            await engine.apply(StopRequested(job=JobId(f"j{number}")))

    assert session.closed.is_set()


# time


async def prepares(engine: Engine, check_in: float) -> None:
    """A job is being prepared, or its time for that is over already; its agent never gets anywhere."""
    assert await engine.apply(connection(engine.streams.open())) == Noted()
    await engine.apply(submission(timeouts=limits(check_in=check_in)))
    assert await phase(engine) in {JobPhase.PREPARING, JobPhase.STOPPING}


async def test_a_deadline_wakes_an_engine_that_has_nothing_else_to_do() -> None:
    async with working(engine := engine_on(MemoryStore())):
        await prepares(engine, 0.02)
        with engine.signals.listen(J) as listener:
            while await phase(engine) is JobPhase.PREPARING:
                await listener.wait()

        assert await phase(engine) is JobPhase.STOPPING


async def test_a_deadline_is_seen_also_by_an_engine_that_never_rests() -> None:
    engine = engine_on(MemoryStore())

    async def chatter() -> None:
        while True:
            await engine.post(HeartbeatReceived(node=A, plan_revision=1000))

    def stopping(cluster: Cluster) -> bool:
        return cluster.phase(J) is JobPhase.STOPPING

    async with working(engine) as tasks:
        await prepares(engine, 0.02)
        talkers = [tasks.create_task(chatter(), name=f"chatter {number}") for number in range(3)]
        while not await engine.query(lambda cluster, _: stopping(cluster)):
            pass
        for talker in talkers:
            talker.cancel()
