"""A program that commits gang after gang and says so after each: `python -m tests.contract.committing DATABASE`."""

import sys
from itertools import count
from pathlib import Path

from coordinator.store.records.sql import SqlStore
from tests.contract.records import gang


def main() -> None:
    store = SqlStore.open(Path(sys.argv[1]))
    for sequence in count(1):
        store.commit(gang(f"job-{sequence}", sequence=sequence, size=3))
        print(sequence, flush=True)


if __name__ == "__main__":
    main()
