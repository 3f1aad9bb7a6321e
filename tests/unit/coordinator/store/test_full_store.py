"""The engine when nothing can be stored: what comes is refused, what was stored stays, and it goes on by itself."""

from collections.abc import Sequence
from contextlib import suppress

import pytest

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.events import DeleteRequested, HeartbeatReceived
from coordinator.core.records import Change, Record
from coordinator.engine.engine import Engine, Freshness
from coordinator.store.records.memory import MemoryStore
from coordinator.store.store import Snapshot, StoreError, snapshot_of
from muster.domain.errors import ExhaustedError, UnavailableError
from muster.domain.ids import JobId
from muster.domain.jobs.lifecycle import JobPhase
from tests.builders import stored_records
from tests.lasting_records import lasting
from tests.unit.coordinator.engines import A, StoreThatIsFull, connection, engine_on, phase, submission, working


class StoreThatFails(MemoryStore):
    """Can neither be written nor read while something is wrong with it; may not know whether it kept a commit."""

    def __init__(self) -> None:
        super().__init__()
        self.wrong = ""
        self.keeps_all_the_same = False
        self.loads = 0

    def commit(self, changes: Sequence[Change]) -> None:
        if not self.wrong or self.keeps_all_the_same:
            super().commit(changes)
        if self.wrong:
            raise StoreError(self.wrong)

    def load(self) -> Snapshot:
        self.loads += 1
        if self.wrong:
            raise StoreError(self.wrong)
        return super().load()


SOON = 0.01
"""Seconds until the store is looked at again."""
WRONG = (
    "the disk is full",
    "another program holds the file",
    "the directory is not writable",
    "the file is gone",
    "the disk failed",
    "this file is no database of Muster",
    "the file is damaged",
    "the table jobs holds a record that cannot be read",
)


async def submitted_once_it_is_taken(engine: Engine, name: str) -> None:
    while True:
        with suppress(ExhaustedError):
            await engine.apply(submission(name))
            return


@pytest.mark.parametrize("wrong", WRONG)
async def test_whatever_is_wrong_with_the_store_questions_are_answered_and_it_goes_on_once_it_is_mended(
    wrong: str,
) -> None:
    store = StoreThatFails()
    async with working(engine := engine_on(store, rest=SOON)):
        await engine.apply(submission("before"))
        store.wrong = wrong
        with pytest.raises(ExhaustedError, match=wrong):
            await engine.apply(submission("lost"))
        with pytest.raises(ExhaustedError, match=wrong):
            await engine.apply(DeleteRequested(job=JobId("before"), force=True))
        while store.loads < 2:  # the first was at the start: it has tried to read and could not
            assert await engine.query(lambda cluster, _: list(cluster.jobs)) == ["before"]
            assert await engine.query(lambda cluster, _: list(cluster.jobs), after=Freshness.COMMITTED) == ["before"]
        store.wrong = ""
        await submitted_once_it_is_taken(engine, "after")
        assert await engine.query(lambda cluster, _: list(cluster.jobs)) == ["before", "after"]
    assert [job.id for job in store.load().jobs] == ["before", "after"]


async def test_what_a_failing_store_has_kept_all_the_same_is_there_once_it_can_be_read() -> None:
    store = StoreThatFails()
    async with working(engine := engine_on(store, rest=SOON)):
        store.wrong, store.keeps_all_the_same = "the connection broke at the commit", True
        with pytest.raises(ExhaustedError):
            await engine.apply(submission("kept"))
        assert await engine.query(lambda cluster, _: list(cluster.jobs)) == []
        store.wrong = ""
        await submitted_once_it_is_taken(engine, "after")
        assert await engine.query(lambda cluster, _: list(cluster.jobs)) == ["kept", "after"]


async def test_what_a_turn_that_failed_has_deleted_is_there_again_as_it_was() -> None:
    store = StoreThatFails()
    async with working(engine := engine_on(store)):
        for name in ("first", "second", "third"):
            await engine.apply(submission(name))
        kept = snapshot_of(tuple(lasting(stored_records(store))))
        store.wrong = "the disk is full"
        with pytest.raises(ExhaustedError):
            await engine.apply(DeleteRequested(job=JobId("second"), force=True))
        assert await engine.query(lambda cluster, _: snapshot_of(tuple(lasting(records_of(cluster))))) == kept


def records_of(cluster: Cluster) -> list[Record]:
    return list(cluster.records)


async def test_an_engine_that_waits_for_its_store_ends_when_it_is_told_to() -> None:
    store = StoreThatFails()
    async with working(engine := engine_on(store)):
        store.wrong = "the disk is gone"
        with pytest.raises(ExhaustedError):
            await engine.apply(submission())
    with pytest.raises(UnavailableError):
        await engine.apply(submission())


REFUSAL = "the coordinator can store nothing new: cannot store 3 records: the disk is full"


async def test_what_cannot_be_stored_is_refused_and_leaves_no_trace() -> None:
    store = StoreThatIsFull()
    engine = engine_on(store)
    session = engine.streams.open()
    async with working(engine):
        with pytest.raises(ExhaustedError, match=REFUSAL):
            await engine.apply(submission())
        with pytest.raises(ExhaustedError, match=REFUSAL):
            await engine.apply_and_query(submission(), lambda _, answer: answer)

        assert await engine.query(lambda cluster, _: (list(cluster.jobs), len(cluster.queue))) == ([], 0)
        assert session.closed.is_set()
        assert store.load().jobs == ()


async def test_a_store_that_is_full_is_left_alone_for_a_while_and_who_asks_meanwhile_is_refused_too() -> None:
    store = StoreThatIsFull()
    async with working(engine := engine_on(store)):
        for number in range(100):
            await engine.post(HeartbeatReceived(node=A, plan_revision=1))
            with pytest.raises(ExhaustedError, match=REFUSAL):
                await engine.apply(submission(f"j{number}"))
    assert store.tries == 1


async def test_once_there_is_room_again_all_goes_on_with_what_was_stored_before() -> None:
    store = StoreThatIsFull()
    store.full = False
    async with working(engine := engine_on(store)):
        await engine.apply(submission("before"))
        store.full = True
        with pytest.raises(ExhaustedError):
            await engine.apply(submission("lost"))
        store.full = False
        while True:
            with suppress(ExhaustedError):
                await engine.apply(connection(engine.streams.open()))
                break
        await engine.apply(submission("after"))

        assert await engine.query(lambda cluster, _: list(cluster.jobs)) == ["before", "after"]
        assert await phase(engine, JobId("before")) is JobPhase.PREPARING
    assert [job.id for job in store.load().jobs] == ["before", "after"]
