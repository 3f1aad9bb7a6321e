"""A program that fills the disk below a directory with commits, then with a log, and says what became of both.

`python -m tests.contract.filling DIRECTORY` prints JSON; run it on a small file system.
"""

import json
import shutil
import sys
from contextlib import suppress
from pathlib import Path

from coordinator.core.records import DropJob
from coordinator.store.logs.logs import LOGS_LEAVE_FREE, LogStore
from coordinator.store.records.reserve import ReservingStore
from coordinator.store.records.sql import SqlStore
from coordinator.store.store import StoreError
from muster.domain.ids import ExecutionId, JobId
from tests.contract.records import gang, job, puts

RESERVE = 192 * 1024

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
    stored = logs.size(execution)
    logs.close()
    return {"size": size, "message": message, "stored": stored, "on_disk": on_disk}


def delete_on_a_full_disk(directory: Path) -> dict[str, object]:
    """A deletion where nothing has room any more, without the reserve and with it."""
    plain = SqlStore.open(directory / "coordinator.db")
    store = ReservingStore(plain, directory / "reserve", RESERVE)
    store.commit([change for name in ("one", "two") for change in gang(name, size=200)])
    reserved = (directory / "reserve").stat().st_size
    with (directory / "ballast").open("wb", buffering=0) as ballast, suppress(OSError):
        while True:
            ballast.write(bytes(1024))
    try:
        plain.commit([DropJob(job=JobId("one"))])
        message = ""
    except StoreError as error:
        message = str(error)
    store.commit([DropJob(job=JobId("two"))])
    left = [job.id for job in store.load().jobs]
    store.close()
    for file in directory.iterdir():
        file.unlink()
    return {"reserved": reserved, "message": message, "left": left}


def leave_room_for_the_database(directory: Path) -> dict[str, object]:
    """Logs that fill the disk until they may not, and a commit after that."""
    store, logs = SqlStore.open(directory / "coordinator.db"), LogStore(directory / "logs", left_free=LOGS_LEAVE_FREE)
    execution, size = ExecutionId("b-1-0"), 0
    try:
        while True:
            size = logs.append(execution, size, LINE)
    except StoreError as error:
        message = str(error)
    store.commit(gang("after", size=1))
    jobs = [job.id for job in store.load().jobs]
    store.close()
    logs.drop_job(JobId("b"))
    again = logs.append(execution, 0, LINE)
    return {"message": message, "jobs": jobs, "again": again}


if __name__ == "__main__":
    where = Path(sys.argv[1])
    found = {
        "deletion": delete_on_a_full_disk(where),
        "database": fill_database(where),
        "log": fill_log(where),
    }
    shutil.rmtree(where / "logs")
    print(json.dumps(found | {"room": leave_room_for_the_database(where)}))
