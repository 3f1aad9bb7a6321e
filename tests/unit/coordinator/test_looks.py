"""Looks at the cluster: as it durably is, without a place in the line of events."""

import asyncio

from coordinator.engine.engine import Freshness
from coordinator.store.records.memory import MemoryStore
from muster.domain.jobs.lifecycle import JobPhase
from tests.unit.coordinator.engines import (
    J,
    StoreThatWaits,
    all_else_has_had_its_turn,
    engine_on,
    phase,
    submission,
    working,
)


async def test_a_look_does_not_wait_for_what_only_stands_in_line() -> None:
    engine = engine_on(MemoryStore())
    await engine.post(submission())

    assert await engine.query(lambda cluster, _: len(cluster.jobs), after=Freshness.COMMITTED) == 0
    async with working(engine):
        assert await phase(engine) is JobPhase.QUEUED


async def test_a_look_at_what_is_not_durable_yet_waits_until_it_is() -> None:
    store = StoreThatWaits()
    engine = engine_on(store)
    async with working(engine) as tasks:
        tasks.create_task(engine.apply(submission()), name="submit")
        await asyncio.to_thread(store.entered.wait, 60)
        look = tasks.create_task(
            engine.query(lambda cluster, _: len(cluster.jobs), after=Freshness.COMMITTED), name="look"
        )
        await all_else_has_had_its_turn()
        assert not look.done()

        store.let_go.set()

        assert await look == 1


async def test_who_hears_of_a_change_can_look_at_it_before_the_next_turn() -> None:
    store = StoreThatWaits()
    engine = engine_on(store)

    async def jobs_once_told() -> int:
        with engine.signals.listen(J) as listener:
            await listener.wait()
        return await engine.query(lambda cluster, _: len(cluster.jobs), after=Freshness.COMMITTED)

    async with working(engine) as tasks:
        told = tasks.create_task(jobs_once_told(), name="told")
        await engine.post(submission())
        await asyncio.to_thread(store.entered.wait, 60)
        await engine.post(submission("another"))
        store.let_go.set()

        assert await told == 1
        assert await engine.query(lambda cluster, _: len(cluster.jobs)) == 2
