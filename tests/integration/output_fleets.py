"""Fleets of a coordinator, a depot and an agent, for tests of what jobs leave."""

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from muster.cli.local.fleet import client_of
from muster.client.client import Client
from muster.client.endpoint import Login
from tests.integration.depots import depot, uploaded
from tests.integration.programs import ROOT, agent, coordinator

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
    """A coordinator that knows its depot, and one agent."""
    state = place / "coordinator"
    async with coordinator(place) as login, client_of(login) as client, depot(state), agent(place, login):
        await uploaded(client, folder_in(place / "folder"))
        yield client


def folder_in(directory: Path) -> Path:
    """Something to send: once that is there, the coordinator knows its depot."""
    directory.mkdir()
    (directory / "file").write_text("x")
    return directory


async def muster(login: Login, directory: Path, *words: str) -> tuple[int | None, str, str]:
    """Exit code, output and messages of a command line, called in a directory."""
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "muster", "--coordinator", login.address, *words),
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT), "MUSTER_TOKEN": login.token or ""},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, messages = await program.communicate()
    return program.returncode, output.decode(), messages.decode()
