"""An engine counts what it does."""

from coordinator.engine.work_counts import WorkCounts
from coordinator.store.records.memory import MemoryStore
from muster.domain.telemetry.coordinator_figures import COMMIT_BOUNDS
from tests.unit.coordinator.engines import connection, engine_on, working


def test_a_commit_is_counted_at_the_first_bound_that_it_does_not_exceed() -> None:
    work = WorkCounts(lambda: 0)

    for seconds in (0.0, COMMIT_BOUNDS[0], COMMIT_BOUNDS[0] + 0.0001, COMMIT_BOUNDS[-1] + 1):
        work.commits.add(seconds)

    assert tuple(work.commits.counts) == (2, 1, *[0] * (len(COMMIT_BOUNDS) - 2), 1)
    assert work.commits.seconds == 2 * COMMIT_BOUNDS[0] + 0.0001 + COMMIT_BOUNDS[-1] + 1


async def test_turns_and_commits_of_an_engine_are_counted_and_questions_commit_nothing() -> None:
    async with working(engine := engine_on(MemoryStore())):
        await engine.apply(connection(engine.streams.open()))
        committed, turns = sum(engine.work.commits.counts), engine.work.turns
        await engine.query(lambda cluster, _: len(cluster.nodes))

    assert (committed, turns) == (1, 1)
    assert (sum(engine.work.commits.counts), engine.work.turns) == (1, 2)
