"""Fixtures of the contract suites."""

# Hypothesis' pytest plugin imports it after the last test, where Python 3.11 may fail to parse it when garbage with
# finalizers is collected meanwhile (python/cpython#106905), and connections leave such garbage.
from collections.abc import Iterator
from pathlib import Path

import hypothesis  # noqa: F401 - before the tests, as said above
import pytest

from tests.contract.door_side import DoorSide
from tests.contract.stores import open_store, store
from tests.docker_daemon import docker_socket

__all__ = ["docker_socket", "open_store", "store"]


@pytest.fixture
def door(tmp_path: Path) -> Iterator[DoorSide]:
    """The agent's side of a door."""
    side = DoorSide(tmp_path)
    yield side
    side.close()
