"""How fast the coordinator's stores are on this disk: `python bench/store.py [DIRECTORY]`.

Medians of several runs; the SQLite store with `synchronous=FULL`, as in production.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from coordinator.core.records import Attempt, Execution, Job, Put
from coordinator.store.logs.logs import LogStore
from coordinator.store.records.sql import SqlStore
from muster.domain.gangs.log import LogRecord, Stream, format_record
from muster.domain.gangs.roster import PortLease
from muster.domain.ids import ExecutionId, GpuUuid, JobId, NodeId, execution_id
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.lifecycle import PROGRESS

RUNS = 9
BATCH = 1000
START = datetime(2026, 11, 21, 8, 48, 50, tzinfo=UTC)
J = JobId("bench")
LARGE = 1024**3
"""Bytes of the log in which a tail is sought."""


def execution(attempt: int, rank: int, steps: int) -> Execution:
    """An execution on its way: placed on a GPU node, with ports, time-stamped so many times."""
    return Execution(
        id=execution_id(J, attempt, rank),
        job=J,
        attempt=attempt,
        rank=rank,
        state=PROGRESS[steps - 1],
        times={state: START + timedelta(seconds=number) for number, state in enumerate(PROGRESS[:steps])},
        node=NodeId(f"node-{rank // 8}"),
        gpus=(GpuUuid("GPU-7a1d0dc2-9c2b-4d6e-8d53-2f5d1c2f0a11"),),
        address="10.20.30.40",
        ports=(PortLease(name="master", host_port=29500, container_port=29500),),
    )


def seconds(action: Callable[[], object]) -> float:
    """How long it takes."""
    before = time.perf_counter()
    action()
    return time.perf_counter() - before


def show(what: str, values: list[float], unit: str) -> None:
    """One line with the median and the range."""
    print(f"{what:<58} {statistics.median(values):>10.2f} {unit}   ({min(values):.2f} … {max(values):.2f})")


def bench_records(directory: Path) -> None:
    """Commits of many records, of one record, and loading."""
    database = directory / "coordinator.db"
    store = SqlStore.open(database)
    job = Job(id=J, spec=JobSpec(name="bench", roles=(Role(),)), sequence=1, submitted_at=START)
    store.commit([Put(record=job), *(Put(record=Attempt(job=J, number=number)) for number in range(1, RUNS + 1))])

    def rate(number: int, steps: int) -> float:
        changes = [Put(record=execution(number, rank, steps)) for rank in range(BATCH)]
        return BATCH / seconds(lambda: store.commit(changes)) / 1000

    show(f"commit of {BATCH} new executions", [rate(number, 1) for number in range(1, RUNS + 1)], "k records/s")
    further = [rate(number, steps) for steps in range(2, len(PROGRESS) + 1) for number in range(1, RUNS + 1)]
    show(f"commit of {BATCH} executions that go one state further", further, "k records/s")
    one = [replace(execution(1, rank, 6), detail=f"run {run}") for run in range(30) for rank in range(10)]
    show("commit of one execution", [seconds(lambda: store.commit([Put(record=each)])) * 1e3 for each in one], "ms")  # noqa: B023 - called at once
    show("load of 9000 executions", [seconds(store.load) * 1e3 for _ in range(RUNS)], "ms")
    store.close()
    show(
        "open of a current database",
        [seconds(lambda: SqlStore.open(database).close()) * 1e3 for _ in range(RUNS)],
        "ms",
    )


def bench_logs(directory: Path) -> None:
    """Appending small and large chunks; finding the end of a large log."""
    logs = LogStore(directory / "logs")
    line = format_record(LogRecord(time_ns=int(START.timestamp()) * 10**9, stream=Stream.STDOUT, text=b"x" * 80))
    small = [ExecutionId(f"bench-1-{rank}") for rank in range(200)]
    sizes = dict.fromkeys(small, 0)

    def round_of_small() -> None:
        for each in small:
            sizes[each] = logs.append(each, sizes[each], line * 10)

    show(
        "append of 10 lines to each of 200 logs", [seconds(round_of_small) / 200 * 1e6 for _ in range(RUNS)], "us each"
    )
    large = ExecutionId("bench-2-0")
    chunk = line * (1024**2 // len(line))
    rates = []
    while logs.size(large) < LARGE:
        taken = seconds(lambda: logs.append(large, logs.size(large), chunk))
        rates.append(len(chunk) / taken / 1e6)
    show("append of 1 MiB chunks, checked", rates, "MB/s")
    show(
        "last 100 lines of a 1 GiB log", [seconds(lambda: logs.last_lines(large, 100)) * 1e3 for _ in range(RUNS)], "ms"
    )
    since = START - timedelta(days=1)
    show("place of a time in a 1 GiB log", [seconds(lambda: logs.read(large, since=since, limit=1)) * 1e3], "ms")
    show("read of 1000 records", [seconds(lambda: logs.read(large, offset=0)) * 1e3 for _ in range(RUNS)], "ms")
    show("finish (fsync) of a small log", [seconds(lambda: logs.finish(each)) * 1e3 for each in small[:20]], "ms")  # noqa: B023 - called at once
    logs.close()


def main() -> None:
    """Run all of it below a directory that is deleted afterwards."""
    python = subprocess.run([sys.executable, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    print(f"{python}, median (lowest … highest)")
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if sys.argv[1:] else None) as directory:
        bench_records(Path(directory))
        bench_logs(Path(directory))


if __name__ == "__main__":
    main()
