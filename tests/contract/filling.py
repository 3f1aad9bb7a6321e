"""A program that fills the disk below a directory with commits, then with a log, and says what became of both.

`python -m tests.contract.filling DIRECTORY` prints JSON; run it on a small file system.
"""

import json
import sys
from pathlib import Path

from coordinator.store.logs import LogStore
from coordinator.store.sql import SqlStore
from coordinator.store.store import StoreError
from muster.domain.ids import ExecutionId
from tests.contract.records import gang, job, puts

LINE = b"2026-11-21T08:48:50.123456789Z stdout F " + b"x" * 900 + b"\n"


def fill_database(directory: Path) -> dict[str, object]:
    store = SqlStore.open(directory / "coordinator.db")
    ballast = directory / "ballast"
    ballast.write_bytes(bytes(128 * 1024))
    done = 0
    try:
        while True:
            store.commit(
                [*gang(f"job-{done}", sequence=done), *puts(job(f"job-{done}", sequence=done, content=LINE * 20))]
            )
            done += 1
    except StoreError as error:
        message = str(error)
    jobs, executions = len(store.load().jobs), len(store.load().executions)
    ballast.unlink()
    store.commit(gang("after", sequence=done))
    after = len(store.load().jobs)
    store.close()
    for file in directory.glob("coordinator.db*"):
        file.unlink()
    return {"done": done, "message": message, "jobs": jobs, "executions": executions, "after": after}


def fill_log(directory: Path) -> dict[str, object]:
    logs, execution = LogStore(directory / "logs"), ExecutionId("a-1-0")
    size = 0
    try:
        while True:
            size = logs.append(execution, size, LINE * 50)
    except StoreError as error:
        message = str(error)
    on_disk = (directory / "logs" / "a" / "1-0.cri").stat().st_size
    return {"size": size, "message": message, "stored": logs.size(execution), "on_disk": on_disk}


if __name__ == "__main__":
    where = Path(sys.argv[1])
    print(json.dumps({"database": fill_database(where), "log": fill_log(where)}))  # noqa: T201
