"""Logs that were complete and are gone from the disk."""

from dataclasses import replace
from pathlib import Path

from coordinator.core.records import Change, Execution, Put
from coordinator.service.watching.logs import LogMerge, LogWish
from coordinator.store.logs.logs import LogStore
from coordinator.store.records.memory import MemoryStore
from muster.domain.gangs.log import LogRecord, Stream, format_record
from muster.domain.jobs.lifecycle import State
from tests.contract.records import attempt, execution, job, puts
from tests.unit.coordinator.engines import engine_on, working


async def lines(store: MemoryStore, logs: LogStore) -> list[tuple[int, str]]:
    """What somebody is shown who asks for the logs of the job."""
    engine = engine_on(store)
    async with working(engine):
        batches = LogMerge(engine, logs).lines(LogWish(job=job("a").id))
        return [(line.rank, line.record.text.decode()) async for batch in batches for line in batch]


def ended(rank: int, *, kept: bool = True) -> Execution:
    member = execution("a", rank=rank, state=State.RUNNING)
    return replace(member, state=State.SUCCEEDED, log_complete=True, log_kept=kept)


async def test_a_complete_log_that_is_gone_leaves_a_mark(tmp_path: Path) -> None:
    store, logs = MemoryStore(), LogStore(tmp_path)
    changes: list[Change] = [*puts(job("a"), attempt("a")), *(Put(record=ended(rank)) for rank in range(3))]
    store.commit(changes)
    there, empty = ended(0).id, ended(1).id
    logs.append(
        there, 0, format_record(LogRecord(time_ns=1_800_000_000_000_000_000, stream=Stream.STDOUT, text=b"hello"))
    )
    logs.finish(there, empty)

    assert sorted(await lines(store, logs)) == [
        (0, "hello"),
        (2, "[muster] the log of this execution is missing: it was complete, and is gone from the coordinator's disk"),
    ]
    logs.close()


async def test_a_silent_execution_has_no_log_that_could_be_gone(tmp_path: Path) -> None:
    store, logs = MemoryStore(), LogStore(tmp_path)
    store.commit([*puts(job("a"), attempt("a")), Put(record=ended(0, kept=False))])
    assert await lines(store, logs) == []
