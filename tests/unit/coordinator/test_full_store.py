"""The engine when nothing can be stored: what comes is refused, what was stored stays, and it goes on by itself."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import pytest

from coordinator.core.answers import Answer
from coordinator.core.events import HeartbeatReceived
from coordinator.core.records import Change
from coordinator.store.memory import MemoryStore
from coordinator.store.store import Snapshot, StoreError
from muster.domain.errors import ExhaustedError
from muster.domain.ids import JobId
from muster.domain.lifecycle import JobPhase
from tests.unit.coordinator.engines import A, StoreThatIsFull, connection, engine_on, phase, submission, working


class StoreThatBreaks(MemoryStore):
    """Can neither be written nor, from then on, be read."""

    broken = False

    def commit(self, changes: Sequence[Change]) -> None:
        self.broken = True
        raise StoreError(f"cannot store {len(changes)} records: the disk is gone")

    def load(self) -> Snapshot:
        if self.broken:
            raise StoreError("cannot be read: the disk is gone")
        return super().load()


async def test_a_store_that_cannot_even_be_read_ends_the_engine_and_nobody_is_told_that_it_worked() -> None:
    engine = engine_on(StoreThatBreaks())
    asked: list[asyncio.Future[list[Answer | BaseException]]] = []

    async def submit() -> None:
        async with working(engine):
            asked.append(asyncio.gather(engine.ask(submission()), return_exceptions=True))
            await asyncio.wait(asked)

    with pytest.raises(ExceptionGroup) as failures:
        await submit()
    assert [str(failure) for failure in failures.value.exceptions] == ["cannot be read: the disk is gone"]
    assert [str(outcome) for outcome in await asked[0]] == ["the coordinator has ended; ask again once it is back"]


REFUSAL = "the coordinator can store nothing new: cannot store 3 records: the disk is full"


async def test_what_cannot_be_stored_is_refused_and_leaves_no_trace() -> None:
    store = StoreThatIsFull()
    engine = engine_on(store)
    session = engine.open_session()
    async with working(engine):
        with pytest.raises(ExhaustedError, match=REFUSAL):
            await engine.ask(submission())
        with pytest.raises(ExhaustedError, match=REFUSAL):
            await engine.ask_and_read(submission(), lambda _, answer: answer)

        assert await engine.read(lambda cluster, _: (list(cluster.jobs), cluster.waiting)) == ([], 0)
        assert session.closed.is_set()
        assert store.load().jobs == ()


async def test_a_store_that_is_full_is_left_alone_for_a_while_and_who_asks_meanwhile_is_refused_too() -> None:
    store = StoreThatIsFull()
    async with working(engine := engine_on(store)):
        for number in range(100):
            await engine.tell(HeartbeatReceived(node=A, plan_revision=1))
            with pytest.raises(ExhaustedError, match=REFUSAL):
                await engine.ask(submission(f"j{number}"))
    assert store.tries == 1


async def test_once_there_is_room_again_all_goes_on_with_what_was_stored_before() -> None:
    store = StoreThatIsFull()
    store.full = False
    async with working(engine := engine_on(store)):
        await engine.ask(submission("before"))
        store.full = True
        with pytest.raises(ExhaustedError):
            await engine.ask(submission("lost"))
        store.full = False
        while True:
            with suppress(ExhaustedError):
                await engine.ask(connection(engine.open_session()))
                break
        await engine.ask(submission("after"))

        assert await engine.read(lambda cluster, _: list(cluster.jobs)) == ["before", "after"]
        assert await phase(engine, JobId("before")) is JobPhase.PREPARING
    assert [job.id for job in store.load().jobs] == ["before", "after"]
