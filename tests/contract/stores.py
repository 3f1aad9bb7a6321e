"""Every store that there is, for the suites that hold all of them to one contract."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from coordinator.store.records.memory import MemoryStore
from coordinator.store.records.reserve import ReservingStore
from coordinator.store.records.sql import SqlStore
from coordinator.store.store import Store

Open = Callable[[], Store]
"""Opens the same state again."""


@pytest.fixture(params=["memory", "sqlite", "sqlite with a reserve"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    opened: list[Store] = []
    memory = MemoryStore()

    def open_again() -> Store:
        for each in opened:
            each.close()
        store: Store = memory if request.param == "memory" else SqlStore.open(tmp_path / "coordinator.db")
        reserving = request.param == "sqlite with a reserve"
        opened.append(ReservingStore(store, tmp_path / "reserve", size=4096) if reserving else store)
        return opened[-1]

    yield open_again
    for each in opened:
        each.close()


@pytest.fixture
def store(open_store: Open) -> Store:
    return open_store()
