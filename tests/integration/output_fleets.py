"""Fleets of a coordinator, a depot and an agent, for tests of what jobs leave."""

import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from muster.cli.local.fleet import client_of
from muster.client.client import Client
from tests.integration.depots import depot
from tests.integration.programs import agent, coordinator

LIMIT = 90.0
WRITES = 'echo results > "$MUSTER_OUTPUTS_DIR/results.txt"'


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that the node's user for jobs can get to, unlike pytest's."""
    with tempfile.TemporaryDirectory(prefix="muster-outputs-") as directory:
        path = Path(directory)
        path.chmod(0o755)
        yield path


@asynccontextmanager
async def fleet(place: Path) -> AsyncIterator[Client]:
    """A coordinator, its depot and one agent."""
    state = place / "coordinator"
    async with coordinator(place) as login, client_of(login) as client, depot(state), agent(place, login):
        yield client
