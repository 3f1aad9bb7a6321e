"""A program that fills the disk below a directory and writes to the audit log all the same, as long as that lasts.

`python -m tests.contract.filling_audit DIRECTORY` prints JSON; run it on a small file system.
"""

import json
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from coordinator.store.store import StoreFullError
from coordinator.store.trust.sql import SqlTrust
from coordinator.trust.records import AuditWish
from muster.domain.fleet.access import AuditEntry

NOW = datetime(2026, 5, 1, tzinfo=UTC)
ENTRIES = [AuditEntry(at=NOW, who="a" * 200, what="w", target="t" * 200, origin="o", result="r" * 200)] * 100


def fill(file: Path) -> None:
    with suppress(OSError), file.open("ab", buffering=0) as ballast:
        while True:
            ballast.write(bytes(4096))


def fill_beside_audit(directory: Path) -> dict[str, object]:
    store, reserve, ballast = SqlTrust.open(directory / "coordinator.db"), directory / "audit-reserve", directory / "b"
    held = reserve.stat().st_size
    fill(ballast)
    batches = 0
    while True:
        try:
            store.commit_trust([], ENTRIES)
        except StoreFullError as error:
            message = str(error)
            break
        batches += 1
        fill(ballast)
    used_up = reserve.stat().st_size
    ballast.unlink()
    store.commit_trust([], ENTRIES)
    kept = len(store.audit(AuditWish(limit=1_000_000)))
    store.close()
    return {
        "held": held,
        "batches": batches,
        "message": message,
        "used up": used_up,
        "kept": kept,
        "again": reserve.stat().st_size,
    }


if __name__ == "__main__":
    print(json.dumps(fill_beside_audit(Path(sys.argv[1]))))
