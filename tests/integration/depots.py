"""Depots as programs, and folders that are sent to them."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from muster.client.client import Client
from muster.domain.data.upload import UploadedFolder
from muster.domain.errors import UnavailableError
from tests.integration.programs import ROOT


@asynccontextmanager
async def depot(state: Path, *options: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A depot that comes to the coordinator of this state directory, ended in order if nobody has killed it."""
    with (state / "depot.log").open("ab") as output:
        program = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "coordinator.depot", "--state", str(state), *options),
            cwd=ROOT,
            stdout=output,
            stderr=output,
        )
    try:
        yield program
    finally:
        if program.returncode is None:
            program.terminate()
        await program.wait()


async def uploaded(client: Client, folder: Path) -> UploadedFolder:
    """A folder that was sent as soon as the depot had told where it serves."""
    while True:
        try:
            return await client.data.upload(folder)
        except UnavailableError:
            await asyncio.sleep(0.05)
