"""Depots as programs, and folders that are sent to them."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from coordinator.clock import wall_time
from coordinator.depot.sweeping import UNNAMED_KEPT
from muster.client.client import Client
from muster.domain.data.upload import UploadedFolder
from muster.domain.errors import UnavailableError
from muster.transfer.objects import ObjectFiles
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


def age_all(state: Path) -> ObjectFiles:
    """The objects of a depot, all of which were sent long ago."""
    long_ago = (wall_time() - 2 * UNNAMED_KEPT).timestamp()
    objects = ObjectFiles(state / "depot")
    for digest, _ in objects.all():
        os.utime(state / "depot" / "objects" / digest[:2] / digest, (long_ago, long_ago))
    return objects
